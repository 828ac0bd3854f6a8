"""From kernel sources to loadable kernel libraries.

On entry: KernelSources of any number of regions. On exit: one result for each, in order: a KernelBinary whose
library is in place and verified, or a BuildFailure with reason and remedy. Nothing here raises for what the
machine does not have. Regions with the same code share one build; a compiler runs only for what the cache
does not have.

A library's key is made of what was compiled and what compiled it: `<code digest, 24>` + `<tools digest, 8>`.
Where no compiler can be found, a library of the same code by any compiler serves.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from tqdm import tqdm

from tf_autofuse import diagnostics
from tf_autofuse.build import debug_folder, host_library
from tf_autofuse.build.cache import Cache, Entry, Unwritable, content_key
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.stamps import toolkit_stamp
from tf_autofuse.build.storage import open_storage
from tf_autofuse.build.toolchain import KERNEL_FLAGS, CompileFailed, Toolchain, find_toolchain, run
from tf_autofuse.build.twin_archive import TwinArchive, defines, tree_digest, twin_archive
from tf_autofuse.codegen.abi import ABI_VERSION
from tf_autofuse.codegen.ascendc.cann import Toolkit
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_TOOLS, TWIN_UNITS, KernelSources
from tf_autofuse.resources import npu_kernels_dir

LIBRARY = "kernel.so"
_REPORT = (
    "the region runs as TensorFlow's own ops; please report it with the folder that "
    "--codegen_compile_debug=true;--debug_dir=DIR (AUTOFUSE_DFX_FLAGS) keeps"
)


@dataclass(frozen=True)
class BuildSettings:
    """What building reads of a Config. cache_bytes: bound of the cache folder, bytes. code_key: the values
    that can change code, for the key. environ: where CXX, PATH, HOME and the like are read. compiles: whether
    a compiler may be called. debug_dir: where to keep a folder a region, or None. extra_flags: further
    compiler flags for kernels. toolkit: build kernels of the ascend target for the device, with it; None: for
    the host twin."""

    cache_dir: Optional[str] = None
    cache_bytes: int = 2 << 30
    verbose: bool = False
    twin_check: bool = True
    code_key: Tuple = ()
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    compiles: bool = True
    debug_dir: Optional[str] = None
    extra_flags: Tuple[str, ...] = ()
    toolkit: Optional[Toolkit] = None

    @classmethod
    def of(cls, config, toolkit: Optional[Toolkit] = None) -> "BuildSettings":
        return cls(
            config.cache_dir or None,
            config.cache_size,
            bool(config.verbose),
            bool(config.twin_check),
            config.cache_key(),
            os.environ,
            config.build != "cached",
            (config.debug_dir or debug_folder.DEFAULT) if config.codegen_compile_debug else None,
            toolkit=toolkit,
        )


@dataclass(frozen=True)
class KernelBinary:
    """name: the fused op's. key: content key, the kernel's name in registries. library: path of the shared
    object; its folder holds the sources too. cached: whether no compiler ran for it. seconds: compiling and
    linking. main: file name of the source that a reader wants to see. in_place: as in KernelSources.
    device_file: of a kernel for the device, its binary in the same folder; `<device_entry>_<tiling key>` are
    its functions, all_at_once whether its blocks wait for each other. Its library has shapes and tiling
    only."""

    name: str
    key: str
    library: str
    cached: bool
    seconds: float = 0.0
    main: str = DEVICE_SOURCE
    in_place: Optional[Tuple[Tuple[int, int], ...]] = None
    device_file: str = ""
    device_entry: str = ""
    all_at_once: bool = False

    @property
    def folder(self) -> str:
        return os.path.dirname(self.library)

    @property
    def source_path(self) -> str:
        """The kernel's source, as it was compiled."""
        return os.path.join(self.folder, self.main)


@dataclass(frozen=True)
class BuildFailure:
    """reason and remedy: sentences. log: the compiler's own words. source_line: the generated line it is
    about."""

    reason: str
    remedy: str
    log: str
    name: str = ""
    source_line: str = ""


BuildResult = Union[KernelBinary, BuildFailure]


def warn(problem: Problem) -> None:
    diagnostics.warn_once("build: " + problem.reason, problem.reason, problem.remedy)


def compiler_for(settings: BuildSettings, what: str) -> Union[Toolchain, Problem]:
    """The compiler; a Problem where there is none, or where the settings forbid to build `what`."""
    if settings.compiles:
        return find_toolchain(settings.environ)
    return Problem("%s is not in the cache, and AUTOFUSE_BUILD=cached forbids to build it" % what,
                   "unset AUTOFUSE_BUILD, or fill the cache by a run without it")


def open_cache(settings: BuildSettings) -> Union[Cache, Problem]:
    """The cache of these settings; a Problem where kernels can't be kept anywhere on this machine."""
    storage = open_storage(settings.cache_dir, settings.environ)
    if storage is None:
        return Problem(
            "no folder was found that kernels can be kept in and loaded from",
            "set AUTOFUSE_CACHE_DIR to a writable folder on a file system without noexec",
        )
    return Cache(storage, settings.cache_bytes, warn)


def code_digest(sources: KernelSources, settings: BuildSettings, npu_kernels_digest: str) -> str:
    """The part of the key that says what is compiled."""
    return content_key(
        (
            ("abi", ABI_VERSION),
            ("code", sources.code_text),
            ("device sources", npu_kernels_digest),
            ("config", _plain(settings.code_key)),
            ("twin check", settings.twin_check and sources.tools.name != HOST_TOOLS.name),
            ("tools", sources.tools.name if settings.toolkit is None else sources.tools.name + " device"),
        )
    )[:24]


def _helpers_digest(npu_kernels: Path, tools: str) -> str:
    """Of the project's own sources that kernels are compiled with."""
    if tools == HOST_TOOLS.name:
        return tree_digest(npu_kernels / "host")
    return tree_digest(npu_kernels / "twin", npu_kernels / "include")


def tools_digest(toolchain: Toolchain, flags: Sequence[str], link_flags: Sequence[str]) -> str:
    """The part of the key that says what compiles it."""
    return content_key(
        (("toolchain", toolchain.identity), ("flags", tuple(flags)), ("link", tuple(link_flags)))
    )[:8]


def _plain(value):
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(v) for v in value)
    return value if isinstance(value, (int, float, str, bool, type(None))) else repr(value)


def build_kernels(
    sources: Sequence[KernelSources], config, progress: Optional[Callable[[int, int], None]] = None
) -> List[BuildResult]:
    """Libraries for all sources, in order. config: a Config, or BuildSettings. progress(done, total) is
    called as kernels are finished, on any thread; default: a bar on stderr when it takes more than a
    second."""
    settings = config if isinstance(config, BuildSettings) else BuildSettings.of(config)
    sources = list(sources)
    if not sources:
        return []
    try:
        npu_kernels = npu_kernels_dir()
    except FileNotFoundError as error:
        return [_failure(s, Problem(str(error), "install tf_autofuse again")) for s in sources]
    cache = open_cache(settings)
    if isinstance(cache, Problem):
        return [_failure(s, cache) for s in sources]
    digests = {name: _helpers_digest(npu_kernels, name) for name in {s.tools.name for s in sources}}
    codes = [code_digest(s, settings, digests[s.tools.name]) for s in sources]
    first: Dict[str, KernelSources] = {}
    for code, s in zip(codes, sources):
        first.setdefault(code, s)

    toolchain = compiler_for(settings, "the kernel")
    if isinstance(toolchain, Problem):
        built = {code: _without_compiler(cache, code, s, toolchain) for code, s in first.items()}
    else:
        built = _build_all(cache, toolchain, npu_kernels, settings, first, progress)
    results = [replace(built[code], name=s.name) for code, s in zip(codes, sources)]
    if settings.debug_dir:
        _keep_debug_folders(settings, npu_kernels, toolchain, codes, sources, results)
    return results


def _keep_debug_folders(settings, npu_kernels: Path, toolchain, codes, sources, results) -> None:
    known = toolchain if isinstance(toolchain, Toolchain) else Toolchain(("g++",), "")
    flags = {HOST_TOOLS.name: host_library.HostCompiler(known, npu_kernels).flags}
    for code, s, result in zip(codes, sources, results):
        try:
            command = known.command + flags.get(s.tools.name, KERNEL_FLAGS)
            debug_folder.write(settings.debug_dir, code, s, result, command, npu_kernels)
        except OSError as error:
            warn(
                Problem(
                    "the debug folder %s can't be written (%s)"
                    % (settings.debug_dir, error.strerror or error),
                    "set --debug_dir (AUTOFUSE_DFX_FLAGS) to a writable folder",
                )
            )
            return


def _failure(sources: KernelSources, problem: Problem) -> BuildFailure:
    return BuildFailure(problem.reason, problem.remedy, problem.log, sources.name)


def _binary(entry: Entry, sources: KernelSources, made: bool) -> KernelBinary:
    return KernelBinary(
        sources.name,
        entry.key,
        str(entry.file(LIBRARY)),
        not made,
        float(entry.manifest.get("seconds", 0.0)) if made else 0.0,
        sources.tools.main,
        sources.in_place,
        **entry.manifest.get("device", {})
    )


def _without_compiler(cache: Cache, code: str, sources: KernelSources, problem: Problem) -> BuildResult:
    entry = cache.find_any("kernel", code)
    return _binary(entry, sources, False) if entry is not None else _failure(sources, problem)


def _build_all(
    cache: Cache,
    toolchain: Toolchain,
    npu_kernels: Path,
    settings: BuildSettings,
    first: Mapping[str, KernelSources],
    progress,
) -> Dict[str, BuildResult]:
    """Each kernel by the tools that its sources are for."""
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    built: Dict[str, BuildResult] = {}
    with _Progress(len(first), settings.verbose, progress) as bar:
        for name in sorted({s.tools.name for s in first.values()}):
            group = {code: s for code, s in first.items() if s.tools.name == name}
            if name == HOST_TOOLS.name:
                built.update(_build_host(cache, toolchain, npu_kernels, settings, group, jobs, bar.step))
            elif settings.toolkit is not None:
                built.update(_build_device(cache, toolchain, npu_kernels, settings, group, jobs, bar.step))
            else:
                built.update(_build_twin(cache, toolchain, npu_kernels, settings, group, jobs, bar.step))
    if any(isinstance(r, KernelBinary) and not r.cached for r in built.values()):
        cache.collect()
    return built


def _build_twin(
    cache: Cache, toolchain: Toolchain, npu_kernels: Path, settings: BuildSettings, group, jobs: int, step
) -> Dict[str, BuildResult]:
    archive = twin_archive(cache, toolchain, npu_kernels, settings.twin_check, jobs)
    if isinstance(archive, Problem):
        return {code: _without_compiler(cache, code, s, archive) for code, s in group.items()}
    tools = tools_digest(toolchain, KERNEL_FLAGS + settings.extra_flags, archive.link_flags)

    def one(item: Tuple[str, KernelSources]) -> BuildResult:
        code, s = item
        result = _made(cache, code + tools, s, lambda f: _compile_twin(toolchain, archive, settings, s, f))
        step()
        return result

    return _in_parallel(one, group, jobs)


def _build_device(
    cache: Cache, toolchain: Toolchain, npu_kernels: Path, settings: BuildSettings, group, jobs: int, step
) -> Dict[str, BuildResult]:
    from tf_autofuse.build import cann  # it builds on this module

    toolkit = settings.toolkit
    facts = (toolkit_stamp(toolkit), cann.DEVICE_FLAGS, cann.NEWER_FLAGS, cann.LINK_FLAGS)
    tools = content_key((("toolkit", facts), ("toolchain", toolchain.identity)))[:8]

    def make(s: KernelSources, folder: Path) -> Mapping[str, object]:
        start = time.perf_counter()
        made = cann.build_device(s, toolkit, toolchain, str(npu_kernels / "include"), folder)
        if isinstance(made, BuildFailure):
            raise DeviceBuildFailed(made)
        os.rename(made.host_library, str(folder / LIBRARY))
        command = cann.link_command(toolkit, s.symbol, made.keys)
        device = {"device_file": os.path.basename(made.path), "device_entry": made.symbol,
                  "all_at_once": made.all_at_once}
        return _facts(s, toolchain, command, time.perf_counter() - start, {"device": device})

    def one(item: Tuple[str, KernelSources]) -> BuildResult:
        code, s = item
        result = _made(cache, code + tools, s, lambda folder: make(s, folder))
        step()
        return result

    return _in_parallel(one, group, jobs)


class DeviceBuildFailed(Exception):
    """failure: what the device's tools said."""

    def __init__(self, failure: BuildFailure):
        super().__init__(failure.reason)
        self.failure = failure


def _build_host(
    cache: Cache, toolchain: Toolchain, npu_kernels: Path, settings: BuildSettings, group, jobs: int, step
) -> Dict[str, BuildResult]:
    """What the cache lacks is compiled in batches; a kernel whose batch failed is compiled alone, so that
    only the bad one fails."""
    compiler = host_library.HostCompiler(toolchain, npu_kernels, settings.extra_flags)
    tools = content_key((("host tools", compiler.identity),))[:8]
    found = {code: cache.find("kernel", code + tools) for code in group}
    missing = [(code, s) for code, s in group.items() if found[code] is None]
    objects = host_library.compile_batches(compiler, missing, jobs)

    def one(item: Tuple[str, KernelSources]) -> BuildResult:
        code, s = item
        if found[code] is not None:
            result = _binary(found[code], s, False)
        else:
            result = _made(cache, code + tools, s,
                           lambda f: _facts(s, toolchain, *compiler.library(s, objects.get(code), f)))
        step()
        return result

    with objects:
        return _in_parallel(one, group, jobs)


def _in_parallel(one: Callable, group: Mapping[str, KernelSources], jobs: int) -> Dict[str, BuildResult]:
    with ThreadPoolExecutor(max_workers=max(1, min(jobs, len(group)))) as pool:
        return dict(zip(group, pool.map(one, group.items())))


def _made(cache: Cache, key: str, s: KernelSources, make: Callable[[Path], Mapping[str,
                                                                                   object]]) -> BuildResult:
    """The kernel from the cache or made now; whatever goes wrong is a value."""
    try:
        entry, made = cache.find_or_make("kernel", key, make)
        return _binary(entry, s, made)
    except CompileFailed as failed:
        return _compiler_said(failed, s)
    except DeviceBuildFailed as failed:
        # The folder that it names is gone.
        remedy = failed.failure.remedy if "ASCEND" in failed.failure.remedy else _REPORT
        return replace(failed.failure, remedy=remedy)
    except Unwritable as error:
        return _failure(s, error.problem)
    except OSError as error:
        return BuildFailure(
            "building failed (%s)" % (error.strerror or error),
            "see the message; the region runs as TensorFlow's own ops",
            str(error),
            s.name,
        )


class _Progress:
    """A bar on stderr, only for what takes longer than a second, and only where somebody looks."""

    def __init__(self, total: int, verbose: bool, callback: Optional[Callable[[int, int], None]]):
        self.total, self.done, self.callback = total, 0, callback
        shown = callback is None and (verbose or sys.stderr.isatty())
        self.bar = tqdm(
            total=total,
            desc="building kernels",
            unit="kernel",
            file=sys.stderr,
            delay=1.0,
            leave=not sys.stderr.isatty(),  # a log keeps the last state instead of blanks
            disable=not shown,
        )

    def __enter__(self):
        return self

    def step(self):
        self.done += 1
        self.bar.update(1)
        if self.callback is not None:
            self.callback(self.done, self.total)

    def __exit__(self, *exc):
        self.bar.close()


def write_sources(sources: KernelSources, folder: Path) -> None:
    for name, text in sources.files:
        with open(str(folder / name), "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def twin_command(
    toolchain: Toolchain, archive: TwinArchive, check: bool, extra: Sequence[str] = ()
) -> Tuple[str, ...]:
    """The argument list that makes LIBRARY of the sources in the working folder."""
    return (
        toolchain.command
        + KERNEL_FLAGS
        + defines(check)
        + tuple(extra)
        + ("-I.",)
        + tuple("-I%s" % i for i in archive.include)
        + TWIN_UNITS
        + (str(archive.path),)
        + archive.link_flags
        + ("-o", LIBRARY)
    )


def _compile_twin(
    toolchain: Toolchain, archive: TwinArchive, settings: BuildSettings, sources: KernelSources, folder: Path
) -> Mapping[str, object]:
    write_sources(sources, folder)
    command = twin_command(toolchain, archive, settings.twin_check, settings.extra_flags)
    start = time.perf_counter()
    result = run(command, str(folder))
    seconds = time.perf_counter() - start
    if result.code != 0:
        raise CompileFailed(result.output, folder)
    return _facts(sources, toolchain, command, seconds, {})


def _compiler_said(failed: CompileFailed, sources: KernelSources) -> BuildFailure:
    full = "No space left" in failed.output
    return BuildFailure(
        "the compiler failed on the kernel of %s: %s" % (sources.name, failed.error),
        (
            "make room on the disk, or set AUTOFUSE_CACHE_DIR to another one"
            if full
            else _REPORT
        ),
        failed.output,
        sources.name,
        failed.line,
    )


def _facts(
    sources: KernelSources, toolchain: Toolchain, command: Sequence[str], seconds: float, more: Mapping[str,
            object]
) -> Mapping[str, object]:
    """What the manifest says of a library."""
    return dict(
        {
            "name": sources.name,
            "symbol": sources.symbol,
            "abi": ABI_VERSION,
            "origin": list(sources.origin),
            "compiler": list(toolchain.command),
            "version": toolchain.version,
            "command": list(command),
            "seconds": round(seconds, 4),
            "sources": list(sources.tools.compiled),
            "main": sources.tools.main,
            "in_place": None if sources.in_place is None else [list(pair) for pair in sources.in_place],
        },
        **more
    )
