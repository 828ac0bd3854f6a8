"""autofuse.compile_adapter: from the texts of Autofuser.codegen to one shared library.

Without an NPU's compiler the library is for this machine: the host part as it is, and the device source
against the host twin of the Ascend C API. Exported are the host part's functions and

    int64_t AutofuseLaunch(uint32_t blockDim, void* stream, void* input0.., void* output0.., void* workspace,
                           AutofuseTilingData* tiling)

with host addresses, which gives 0, or 1 after a violation, whose text goes to stderr. The work folder has
host/ and device/ with the files as a compiler sees them."""

import argparse
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ascir_api.split_files import CompileError, host_files
from tf_autofuse.ascir_api.tools import duration_record, report_durations
from tf_autofuse.build.kernels import BuildSettings, open_cache
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.toolchain import KERNEL_FLAGS, Toolchain, find_toolchain, first_error, run
from tf_autofuse.build.twin_archive import TwinArchive, defines, twin_archive
from tf_autofuse.resources import npu_kernels_dir

DATA_HEADER = "autofuse_tiling_data.h"
_SUPPORTED = ("Ascend910B", "Ascend910_93")
_KNOWN = _SUPPORTED + ("Ascend950",)
_TRUE, _FALSE = ("true", "1", "yes", "y"), ("false", "0", "no", "n")
_ENTRY = re.compile(r'extern "C" __global__ __aicore__ void (\w+)\(([^)]*)\)')


def _flag(word: str) -> bool:
    if word.lower() in _TRUE + _FALSE:
        return word.lower() in _TRUE
    raise argparse.ArgumentTypeError("%r is neither true nor false" % word)


def _parsed(argv: Sequence[str]):
    parser = argparse.ArgumentParser(prog="compile_adapter", allow_abbrev=False)
    parser.add_argument("--graph_name", default="autofuse")
    parser.add_argument("--output_file", required=True)
    parser.add_argument("--output_path", default="")
    parser.add_argument("--force_unknown", type=_flag, default=False)
    parser.add_argument("--config_file", default="")
    parser.add_argument("--soc_version", default="Ascend910B")
    parser.add_argument("--compile_options", default="")
    return parser.parse_args(list(argv))


def graph_file_name(name: str) -> str:
    """A graph's name as a part of file names: in snake case, of letters, digits and underscores."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name)
    word = word[1:] if word.startswith("_") else word
    if word[:1].isdigit():
        word = "t_" + word
    word = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", word)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", word).lower()


def check_soc(soc: str) -> None:
    """Raises ValueError for an unknown chip, CompileError for one that no kernel is generated for."""
    if not soc.startswith(_KNOWN):
        raise ValueError("Unsupported soc_version: %s" % soc)
    if not soc.startswith(_SUPPORTED):
        raise CompileError("no kernels are generated for %s, only for %s" % (soc, " and ".join(_SUPPORTED)))


class _Tools(NamedTuple):
    toolchain: Toolchain
    archive: Optional[TwinArchive]


def _tools(with_twin: bool) -> _Tools:
    toolchain = find_toolchain(os.environ)
    if isinstance(toolchain, Problem):
        raise CompileError("%s; %s" % (toolchain.reason, toolchain.remedy))
    if not with_twin:
        return _Tools(toolchain, None)
    cache = open_cache(BuildSettings(os.environ.get("AUTOFUSE_CACHE_DIR")))
    archive = (
        cache if isinstance(cache, Problem) else twin_archive(cache, toolchain, npu_kernels_dir(), True, 1)
    )
    if isinstance(archive, Problem):
        raise CompileError("%s; %s" % (archive.reason, archive.remedy))
    return _Tools(toolchain, archive)


class _Work:
    """The work folder and the trace of one call."""

    def __init__(self, function: str, argv: Sequence[str]):
        self.options = _parsed(argv)
        check_soc(self.options.soc_version)
        self.function, self.graph = function, graph_file_name(self.options.graph_name)
        self.start = time.perf_counter_ns()
        self.temporary = not self.options.output_path
        self.folder = Path(self.options.output_path or tempfile.mkdtemp(prefix="autofuse_compile_"))
        self.step("PrepareCompileContext", self.start)

    def step(self, name: str, start: int) -> None:
        labels = ["InductorCompile", self.function, name, self.options.graph_name]
        duration_record(labels, start, time.perf_counter_ns() - start)

    def write(self, part: str, files: Dict[str, str]) -> Path:
        folder = self.folder / part
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def compile(self, command: Tuple[str, ...], folder: Path) -> None:
        """Raises CompileError with the compiler's first error and the line it is about."""
        start = time.perf_counter_ns()
        result = run(command, str(folder))
        self.step("AscendCCompile", start)
        if result.code != 0:
            text, line = first_error(result.output, folder)
            raise CompileError("%s%s\n%s" % (text, "; the line is: %s" % line if line else "", result.output))

    def finish(self, library: Path) -> str:
        """Copies the library to where it is wanted; returns the work folder, gone if it was temporary."""
        start = time.perf_counter_ns()
        target = Path(self.options.output_file)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(library), str(target))
        os.chmod(str(target), 0o755)
        self.step("CopyOutput", start)
        return str(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.temporary:
            shutil.rmtree(str(self.folder), ignore_errors=True)
        self.step("Total", self.start)
        report_durations()


def _abi(options: str) -> Tuple[str, ...]:
    words = tuple(options.split())
    given = any("_GLIBCXX_USE_CXX11_ABI" in w for w in words)
    return words + (() if given else ("-D_GLIBCXX_USE_CXX11_ABI=1",))


def _write_host(work: _Work, tiling_def: str, host_tiling: str) -> Tuple[Path, List[str]]:
    start = time.perf_counter_ns()
    files = host_files(host_tiling, work.graph)
    folder = work.write("host", dict(files, **{DATA_HEADER: tiling_def}))
    work.step("GenerateHostSource", start)
    return folder, ["../host/" + name for name in sorted(files) if name.endswith(".cpp")]


def _write_device(work: _Work, tiling_def: str, op_kernel: str) -> Tuple[Path, str]:
    start = time.perf_counter_ns()
    name = "%s_op_kernel.cpp" % work.graph
    files = {DATA_HEADER: tiling_def, name: op_kernel, "launch.cpp": launch_source(op_kernel, name)}
    folder = work.write("device", files)
    work.step("GenerateDeviceSource", start)
    return folder, "launch.cpp"


def launch_source(op_kernel: str, file_name: str) -> str:
    """AutofuseLaunch around the kernel's entry. Raises CompileError where the source has no entry."""
    found = _ENTRY.search(op_kernel)
    if found is None:
        raise CompileError("the kernel source has no entry function")
    name, count = found.group(1), found.group(2).count("GM_ADDR")
    tensors = ["t%d" % i for i in range(count - 2)]
    return _LAUNCH % {
        "file": file_name,
        "name": name,
        "count": len(tensors),
        "capacity": max(1, len(tensors)),
        "entry": ", ".join("static_cast<GM_ADDR>(args[%d])" % i for i in range(count)),
        "parameters": "".join("void* %s, " % t for t in tensors),
        "tensors": ", ".join(tensors) or "nullptr",
        "all": int("SyncAll" in op_kernel),
    }


_LAUNCH = """\
#include "%(file)s"

#include <cstdio>

#include "twin/launch.h"

namespace {
void Entry(void** args) { %(name)s(%(entry)s); }
}  // namespace

extern "C" __attribute__((visibility("default"))) int64_t AutofuseLaunch(
    uint32_t blockDim, void* stream, %(parameters)svoid* workspace, AutofuseTilingData* tiling) {
  (void)stream;
  void* gm[] = {%(tensors)s};
  uint64_t bytes[%(capacity)d];
  uint8_t writable[%(capacity)d];
  for (uint32_t i = 0; i < %(capacity)d; ++i) {
    bytes[i] = UINT64_MAX / 2;  // the caller's sizes are not known here
    writable[i] = 1;
  }
  char error[4096] = {0};
  const int32_t code = twin::RunBlocks(
      "%(name)s", Entry, gm, bytes, writable, %(count)d, workspace, 0, tiling, sizeof(AutofuseTilingData),
      blockDim, 0, blockDim, error, sizeof(error), %(all)d != 0, tiling->tiling_key);
  if (code != 0) std::fprintf(stderr, "%%s\\n", error);
  return code;
}
"""


def _device_words(archive: TwinArchive) -> Tuple[str, ...]:
    return defines(True) + tuple("-I%s" % i for i in archive.include)


def jit_compile(tiling_def, host_tiling, op_kernel, argv) -> str:
    """Host and device part in one library, at --output_file. Returns the work folder. Raises CompileError."""
    with _Work("jit_compile", argv) as work:
        tools = _tools(True)
        _, units = _write_host(work, tiling_def, host_tiling)
        folder, launch = _write_device(work, tiling_def, op_kernel)
        command = tools.toolchain.command + KERNEL_FLAGS + _abi(work.options.compile_options)
        command += _device_words(tools.archive) + ("-I.", "-I../host", launch) + tuple(units)
        work.compile(
            command + (str(tools.archive.path),) + tools.archive.link_flags + ("-o", "kernel.so"), folder
        )
        return work.finish(folder / "kernel.so")


def host_compile(tiling_def_code, tiling_impl_code, argv) -> str:
    """The host part alone. Returns the work folder. Raises CompileError."""
    with _Work("host_compile", argv) as work:
        tools = _tools(False)
        folder, units = _write_host(work, tiling_def_code, tiling_impl_code)
        command = tools.toolchain.command + KERNEL_FLAGS + _abi(work.options.compile_options)
        work.compile(command + ("-shared", "-I.") + tuple(units) + ("-o", "host.so"), folder)
        return work.finish(folder / "host.so")


def kernel_compile(tiling_def_code, kernel_impl_code, argv, *, tiling_repr=None) -> str:
    """The device part alone. tiling_repr: constants for a static graph; a kernel here reads them at run
    time, so it is the same with and without. Returns the work folder. Raises CompileError."""
    with _Work("kernel_compile", argv) as work:
        tools = _tools(True)
        folder, launch = _write_device(work, tiling_def_code, kernel_impl_code)
        command = tools.toolchain.command + KERNEL_FLAGS + tuple(work.options.compile_options.split())
        command += _device_words(tools.archive) + ("-I.", launch, str(tools.archive.path))
        work.compile(command + tools.archive.link_flags + ("-o", "device.so"), folder)
        return work.finish(folder / "device.so")
