"""Kernels of bodies: made once, found afterwards.

A kernel is looked for in this process's memory, then on disk under a key that says everything that it depends
on: the body, the target with its machine and settings, the project's own sources, the compiler and the
processor. Only what is in neither is scheduled, generated and built. On exit of `make` every body has a
KernelBinary or a StageFailure; nothing is raised for what one body contains.

The record on disk names an entry of the kernel cache (build/cache.py), which is verified as always.
"""
import dataclasses
import hashlib
import os
import threading
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from tf_autofuse import diagnostics
from tf_autofuse.build import debug_folder
from tf_autofuse.build.cache import Cache, content_key
from tf_autofuse.build.kernels import BuildFailure, BuildSettings, KernelBinary, build_kernels, open_cache
from tf_autofuse.build.stamps import compiler_stamp, project_stamp, toolkit_stamp
from tf_autofuse.codegen.abi import ABI_VERSION
from tf_autofuse.codegen.ascendc.cann import Toolkit
from tf_autofuse.codegen.replacement import digest, replaced
from tf_autofuse.codegen.targets import Target
from tf_autofuse.config import Config
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.lowering.bodies import Body, Emitted

#: Kind of the records in the cache folder.
RECORD = "region"
#: Kernels remembered in this process; beyond that all are forgotten.
MOST_KERNELS = 8192


class StageFailure(NamedTuple):
    """stage: 'schedule', 'codegen' or 'build'. reason, remedy: sentences."""

    stage: str
    reason: str
    remedy: str


Result = Union[KernelBinary, StageFailure]


class Recipe(NamedTuple):
    """How kernels are made. toolkit: for the device, with this CANN toolkit; None: for the host."""

    target: Target
    machine: Any
    config: Config
    toolkit: Optional[Toolkit] = None

    @property
    def checks(self) -> bool:
        """Whether the invariants of every stage's value are checked, which takes longer than the stages."""
        return bool(self.config.strict or self.config.codegen_compile_debug)

    def schedule(self, fused):
        """What the target's schedule makes. Raises what it refuses with."""
        if self.checks:
            verify_fused(fused)
        scheduled = self.target.schedule(fused, self.machine)
        if self.checks:
            self.target.verify(scheduled)
        return scheduled

    def generate(self, fused, scheduled):
        """KernelSources. Raises what the target refuses with."""
        sources = self.target.generate(fused, scheduled, self.machine, self.config)
        return replaced(sources, self.config.replace_kernel) if self.config.replace_kernel else sources

    def goes_by_name(self, name: str) -> bool:
        """Whether the kernel of the fused op of this name may differ from that of an equal one."""
        return bool(self.config.replace_kernel) or name == self.config.force_template_op_name


class KernelStore:
    """Of one recipe. Cheap to make; what it knows belongs to the process."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        config = recipe.config
        # A debug folder is written by the build, and checks want the stages' values.
        self.remembers = not recipe.checks
        self._settings = BuildSettings.of(config, recipe.toolkit)
        self._prefix = hashlib.sha256(repr((
            recipe.target.name, recipe.machine, config.cache_key(), bool(config.twin_check), config.cache_dir,
            config.build, ABI_VERSION, project_stamp(), compiler_stamp(os.environ),
            digest(config.replace_kernel) if config.replace_kernel else "", toolkit_stamp(recipe.toolkit),
        )).encode()).hexdigest()

    def key(self, body: Body) -> str:
        """32 hex digits: of the body and of everything else that decides its kernel."""
        parts: Tuple[Tuple[str, Any], ...] = (("recipe", self._prefix), ("body", body.digest))
        if self.recipe.goes_by_name(body.fused.name):
            parts += (("name", body.fused.name),)
        return content_key(parts)

    def body_of(self, emitted: Emitted) -> Body:
        """The body that stands for a region: one of its own where names matter."""
        names = (emitted.name, emitted.body.fused.name)
        return Body(emitted.fused) if any(map(self.recipe.goes_by_name, names)) else emitted.body

    def find(self, bodies: Sequence[Body]) -> Dict[str, KernelBinary]:
        """The kernels that are there already, by key."""
        found: Dict[str, KernelBinary] = {}
        if not self.remembers:
            return found
        cache = None
        wanted = {self.key(body): body for body in bodies}
        for key in wanted:
            known = _known.get(key)
            if known is None or not os.path.exists(known.library):
                cache = cache or open_cache(self._settings)
                known = self._on_disk(cache, key) if isinstance(cache, Cache) else None
            if known is not None:
                found[key] = known
                _remember(key, known)
        if self.recipe.config.enable_pgo:
            self._measure_asked(wanted, found)
        return found

    def make(self, bodies: Sequence[Body], run: Callable[[str, Callable], Any]) -> Dict[str, Result]:
        """By key. run(stage, work) calls work; it may measure the time."""
        wanted = {self.key(body): body for body in reversed(bodies)}
        results: Dict[str, Result] = {}
        scheduled = run("schedule", lambda: self._each(
            [(key, (body.fused,)) for key, body in sorted(wanted.items())], "schedule", results,
            lambda fused: (fused, self.recipe.schedule(fused))))
        generated = run("codegen", lambda: self._each(
            scheduled, "codegen", results, self.recipe.generate))
        built = run("build", lambda: build_kernels([sources for _, sources in generated], self._settings))
        for (key, _), result in zip(generated, built):
            if isinstance(result, BuildFailure):
                results[key] = StageFailure("build", result.reason, result.remedy)
            else:
                results[key] = result
        if self.recipe.config.enable_pgo:
            run("measuring tilings", lambda: self._measure(scheduled, results))
        for key, result in results.items():
            if not isinstance(result, StageFailure):
                self._keep(key, result)
        return results

    def _measure(self, scheduled: Sequence[Tuple[str, Tuple[Any, Any]]],
                 results: Mapping[str, Result]) -> None:
        """Measured tilings for the kernels that were built for it. Before they are remembered: a process that
        ends here leaves them to the next one."""
        from tf_autofuse.profiling import pgo

        for key, (fused, impls) in scheduled:
            subject = pgo.subject_of(results.get(key), fused)
            if subject is not None:
                pgo.tune_built(subject, fused, impls, self.recipe.machine, self.recipe.config)

    def _measure_asked(self, bodies: Mapping[str, Body], found: Mapping[str, KernelBinary]) -> None:
        """The same for shapes that kernels have met since."""
        from tf_autofuse.profiling import pgo

        for key, kernel in found.items():
            fused = bodies[key].fused
            subject = pgo.subject_of(kernel, fused)
            if subject is not None:
                pgo.tune_asked(subject, fused, lambda: self.recipe.schedule(fused), self.recipe.machine,
                               self.recipe.config)

    def _each(self, items: Sequence[Tuple[str, tuple]], stage: str, results: Dict[str, Result],
              work) -> List[Tuple[str, Any]]:
        """work(*item) for each, a fused graph first; an exception becomes the body's failure, since one must
        not cost the others."""
        done = []
        for key, item in items:
            try:
                done.append((key, work(*item)))
            except Exception as error:
                self._keep_failed(item[0], stage)
                results[key] = StageFailure(
                    stage, "%s: %s" % (type(error).__name__, error),
                    "the region runs as TensorFlow's own ops; set --codegen_compile_debug=true;"
                    "--debug_dir=DIR (AUTOFUSE_DFX_FLAGS) to keep its stages, and report them")
        return done

    def _keep_failed(self, fused, stage: str) -> None:
        """The graph and the traceback go to the debug folder, if there is one."""
        folder = self._settings.debug_dir
        if folder is None:
            return
        try:
            debug_folder.write_failure(folder, fused, stage, traceback.format_exc())
        except OSError as error:
            diagnostics.warn_once("debug folder", "the debug folder of %s was not written: %s" % (
                fused.name, error), "set --debug_dir (AUTOFUSE_DFX_FLAGS) to a folder that can be written")

    def _on_disk(self, cache: Cache, key: str) -> Optional[KernelBinary]:
        record = cache.find(RECORD, key)
        if record is None:
            return None
        try:
            facts = dict(record.manifest["kernel"])
            entry = cache.find("kernel", facts["key"])
            if entry is None:
                return None
            library = str(entry.file(os.path.basename(facts["library"])))
            known = {name: _tuples(value) for name, value in facts.items()}
            return KernelBinary(**dict(known, library=library, cached=True, seconds=0.0))
        except (KeyError, TypeError, ValueError):
            return None

    def _keep(self, key: str, kernel: KernelBinary) -> None:
        if not self.remembers:
            return
        _remember(key, kernel)
        cache = open_cache(self._settings)
        if not isinstance(cache, Cache):
            return
        try:
            facts = {"name": kernel.name, "kernel": dataclasses.asdict(kernel)}
            cache.find_or_make(RECORD, key, lambda folder: facts)
        except OSError:
            pass  # the next process makes the kernel's sources again


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_lock = threading.Lock()
_known: Dict[str, KernelBinary] = {}


def _remember(key: str, kernel: KernelBinary) -> None:
    with _lock:
        if len(_known) >= MOST_KERNELS:
            _known.clear()
        _known[key] = kernel


def forget() -> None:
    """Empties this process's memory of kernels; those on disk stay. For tests and measurements."""
    with _lock:
        _known.clear()
