"""Libraries of the host target: C kernels, compiled many at a time for the CPU of this machine.

A compiler's start costs as much as a small kernel, so a batch of kernels is one translation unit: every
kernel's source is included under names of its own. One object holds the batch; each kernel becomes a library
of its own that takes from the object what it needs. On exit of `compile_batches` a kernel whose batch did not
compile has no object, and `HostCompiler.library` compiles it alone.

Kernels are built for this CPU (-march=native), whose features are therefore part of a kernel's key.
"""
import re
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.build.toolchain import CompileFailed, Toolchain, run
from tf_autofuse.codegen.abi import SYMBOLS
from tf_autofuse.codegen.host.lines import Lines
from tf_autofuse.codegen.sources import HOST_KERNEL, KernelSources
from tf_autofuse.machine import host_machine

LIBRARY = "kernel.so"
#: Kernels in one translation unit, at most.
BATCH = 16

#: Results do not depend on contraction, errno or trapping state; the vectorizer needs the latter two off.
FLAGS = ("-x", "c", "-std=gnu11", "-O3", "-march=native", "-fPIC", "-fvisibility=hidden",
         "-ffunction-sections",
         "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv")
#: Passes that would take a short innermost loop apart before the vectorizer sees it, or cost time for nothing
#: here.
GCC_FLAGS = ("-fdisable-tree-cunrolli", "-fno-tree-slp-vectorize", "-fno-unswitch-loops", "-fno-split-loops",
             "-fno-tree-loop-distribution", "-fno-loop-interchange", "-fno-loop-unroll-and-jam",
             "-fno-ipa-cp", "-fno-tree-loop-distribute-patterns")
LINK = ("-shared", "-nostdlib", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-s", "-Wl,--as-needed")
_AFTER = ("-lc", "-lgcc")
REPORT = "vectorized.txt"

_VECTORIZED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: (?:optimized|note): +loop vectorized", re.M)
#: Names that a kernel's source defines at its top level.
_DEFINED = re.compile(
    r"^(?:COLD )?(?:static|EXPORT|SETUP)\b[^;={]*?\b(\w+)\(|^\} (\w+);|^typedef struct (\w+) \{", re.M)
_MACRO = re.compile(r"^#define (\w+)", re.M)


class Made(NamedTuple):
    """An object file that holds a kernel. prefix: of the kernel's exported names in it; report: what the
    compiler said of vectorized loops; seconds: the kernel's share of the compiler's time."""

    path: Path
    prefix: str
    report: Tuple[int, ...]
    seconds: float
    command: Tuple[str, ...]


class Objects(Dict[str, Made]):
    """Code -> its object, in a folder that lives as long as the `with` block."""

    def __init__(self, folder: Optional[Path]):
        super().__init__()
        self.folder = folder

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.folder is not None:
            shutil.rmtree(str(self.folder), ignore_errors=True)


class HostCompiler:
    """The compiler with the host target's flags."""

    def __init__(self, toolchain: Toolchain, npu_kernels: Path, extra_flags: Sequence[str] = ()):
        self.toolchain, self.include, self.extra = toolchain, npu_kernels / "host", tuple(extra_flags)

    @property
    def identity(self) -> Tuple:
        """All that can change the machine code of a source."""
        return self.toolchain.identity, self.flags, LINK + _AFTER, host_machine().features

    @property
    def flags(self) -> Tuple[str, ...]:
        return FLAGS + (GCC_FLAGS if self.reports else ()) + self.extra

    @property
    def reports(self) -> bool:
        """Whether it is gcc, which can say which loops it vectorized."""
        return "clang" not in self.toolchain.version.lower()

    def command(self, source: str, target: str) -> Tuple[str, ...]:
        report = ("-fopt-info-vec-optimized=" + REPORT,) if self.reports else ()
        return (self.toolchain.command + self.flags + report
                + ("-I%s" % self.include, "-c", source, "-o", target))

    def compile(self, folder: Path, source: str, target: str) -> float:
        """Seconds. Raises CompileFailed, OSError."""
        start = time.perf_counter()
        result = run(self.command(source, target), str(folder))
        if result.code != 0:
            raise CompileFailed(result.output, folder)
        return time.perf_counter() - start

    def library(self, sources: KernelSources, made: Optional[Made], folder: Path):
        """Writes the sources and LIBRARY into the folder, from the batch's object or by a compiler run for
        this kernel alone. (command, seconds, facts for the manifest). Raises CompileFailed, OSError."""
        for name, text in sources.files:
            with open(str(folder / name), "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        if made is None:
            seconds = self.compile(folder, HOST_KERNEL, "kernel.o")
            made = Made(folder / "kernel.o", "", _report(folder, HOST_KERNEL), seconds,
                        self.command(HOST_KERNEL, "kernel.o"))
        start = time.perf_counter()
        text = sources.text(HOST_KERNEL)
        exported = [s.name for s in SYMBOLS if re.search(r"^(?:EXPORT|SETUP) [^;{]*\b%s\(" % s.name, text,
                                                         re.M)]
        script = folder / "exports.map"
        script.write_text("{ global: autofuse_*; local: *; };\n", encoding="ascii")
        names = tuple("-Wl,--defsym,%s=%s%s" % (n, made.prefix, n) for n in exported) if made.prefix else ()
        keep = tuple("-Wl,-u,%s%s" % (made.prefix, n) for n in exported)
        result = run(self.toolchain.command + LINK + ("-Wl,--version-script,exports.map",) + names + keep
                     + (str(made.path),) + _AFTER + ("-o", LIBRARY), str(folder))
        for left in (script, folder / "kernel.o", folder / REPORT):
            if left.exists():
                left.unlink()
        if result.code != 0:
            raise CompileFailed(result.output, folder)
        facts = {"loops": {str(line): line in made.report
                           for line in marked_lines(text)}} if self.reports else {}
        return made.command, made.seconds + time.perf_counter() - start, facts


def marked_lines(text: str) -> List[int]:
    """The lines, from 1, where an innermost loop begins."""
    return [i for i, line in enumerate(text.split("\n"), 1) if Lines.MARK in line]


def _report(folder: Path, name: str) -> Tuple[int, ...]:
    """The lines of source `name` whose loops were vectorized."""
    try:
        text = (folder / REPORT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(sorted({int(m.group("line")) for m in _VECTORIZED.finditer(text)
                         if m.group("file").lstrip("./") == name}))


def compile_batches(compiler: HostCompiler, missing: Sequence[Tuple[str, KernelSources]],
                    jobs: int) -> Objects:
    """Objects of the kernels, (code, sources) each. One of a batch that failed has none."""
    if len(missing) < 2:
        return Objects(None)
    try:
        objects = Objects(Path(tempfile.mkdtemp(prefix="autofuse-")))
    except OSError:
        return Objects(None)
    count = max(min(jobs, len(missing)), -(-len(missing) // BATCH))
    # The longest sources are dealt out first, so that batches take about as long as each other.
    order = sorted(missing, key=lambda item: -len(item[1].text(HOST_KERNEL)))
    batches = [order[i::count] for i in range(count)]

    def one(numbered) -> Dict[str, Made]:
        number, batch = numbered
        folder = objects.folder / str(number)
        try:
            folder.mkdir()
            (folder / "batch.c").write_text(batch_text([s.text(HOST_KERNEL) for _, s in batch]),
                                            encoding="utf-8")
            for i, (_, s) in enumerate(batch):
                (folder / ("k%d.c" % i)).write_text(s.text(HOST_KERNEL), encoding="utf-8")
            seconds = compiler.compile(folder, "batch.c", "batch.o")
        except (CompileFailed, OSError):
            return {}
        return {code: Made(folder / "batch.o", "k%d_" % i, _report(folder, "k%d.c" % i), seconds / len(batch),
                           compiler.command("batch.c", "batch.o"))
                for i, (code, _) in enumerate(batch)}

    with ThreadPoolExecutor(max_workers=max(1, min(jobs, count))) as pool:
        for made in pool.map(one, enumerate(batches)):
            objects.update(made)
    return objects


def batch_text(texts: Sequence[str]) -> str:
    """The translation unit that includes k0.c, k1.c, ... each under names of its own."""
    lines = []
    for header in sorted({h for t in texts for h in re.findall(r'^#include ("[^"]+"|<[^>]+>)', t, re.M)}):
        lines.append("#include %s" % header)
    for i, text in enumerate(texts):
        names = sorted({n for m in _DEFINED.finditer(text) for n in m.groups() if n})
        lines += ["#define %s k%d_%s" % (n, i, n) for n in names]
        lines.append('#include "k%d.c"' % i)
        lines += ["#undef %s" % n for n in names]
        lines += ["#undef %s" % n for n in sorted(set(_MACRO.findall(text)))]
    return "\n".join(lines) + "\n"


def vectorized_loops(manifest: Mapping) -> Mapping[int, bool]:
    """Line of the source -> whether its innermost loop was vectorized, as build has noted it."""
    return {int(line): bool(done) for line, done in manifest.get("loops", {}).items()}

