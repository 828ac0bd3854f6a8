"""From fused graphs to a custom-operator project of CANN: the texts that `tf-autofuse export` writes.

Why: with such a project installed, GE itself knows the fused ops: their prototypes, shapes, tilings and
kernels. The layout is that of CANN's operator projects with its CMake modules (`find_package(ASC)`,
`npu_op_*`): op_host/, op_kernel/, framework/, CMakePresets.json, build.sh.

On entry FusedGraphs of the ascend target with their variants. On exit files by path; the same input gives the
same bytes. Of each op the kernel, its tiling data and the functions for shapes and tiling are the texts that
generate() gives, unchanged: what the host twin runs and checks is what CANN compiles.
"""
import json
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from tf_autofuse.codegen.ascendc.body import comment
from tf_autofuse.codegen.ascendc.generate import generate, render_text
from tf_autofuse.codegen.ascendc.lines import WIDTH
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_SOURCE, TILING_HEADER, KernelSources
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import has_frame, nests_of
from tf_autofuse.symbolic.size import to_text

#: CANN's names of families of chips, by the beginning of their own names.
_UNITS = (("Ascend910_93", "ascend910_93"), ("Ascend910B", "ascend910b"))
#: GE's names of element types; complex and strings are never fused.
_GE_TYPES = {
    "float32": "ge::DT_FLOAT",
    "float64": "ge::DT_DOUBLE",
    "float16": "ge::DT_FLOAT16",
    "bfloat16": "ge::DT_BF16",
    "bool": "ge::DT_BOOL",
}
#: Letters of an op type without what tells equal ones apart.
_LONGEST_TYPE = 64
_INCLUDE = re.compile(r'^#include "(?:autofuse/)?(\w+\.h)"', re.MULTILINE)


class Tensor(NamedTuple):
    """An argument. kind: 'Input' or 'Output'; dtype: GE's name; type_name: TF's; dims: text."""

    kind: str
    name: str
    dtype: str
    type_name: str
    dims: str


class ProjectOp(NamedTuple):
    """One op type of a project. symbol: its kernel's entry and the name of its files. regions: texts that
    name what it stands for. out_dims: -1 where they depend on the inputs'. size_count: symbols of the kernel.
    has_frame: see schedule/nests.py. synchronises: the blocks wait for each other, since nests read each
    other's workspace."""

    type: str
    symbol: str
    sources: KernelSources
    tensors: Tuple[Tensor, ...]
    in_ranks: List[int]
    out_ranks: List[int]
    out_dims: List[int]
    out_dtypes: List[str]
    size_count: int
    ub_bytes: int
    has_frame: bool
    synchronises: bool
    regions: Tuple[str, ...]

    @property
    def places(self) -> Tuple[str, ...]:
        """The regions as comments of C++."""
        texts = [textwrap.wrap(comment(text), WIDTH, subsequent_indent="//   ") for text in self.regions]
        return tuple(line for lines in texts for line in lines)


def compute_unit(soc: str) -> str:
    """The name of a chip's family in CANN's operator projects. Raises ValueError where it is not known."""
    for beginning, unit in _UNITS:
        if soc.startswith(beginning):
            return unit
    raise ValueError("operator projects are written for the 910B and 910_93 families, not for %s" % soc)


def op_type(fused_name: str, taken: Iterable[str] = ()) -> str:
    """The op type for a fused op's name: `autofuse_reduce_2_AddV2_Sum` is AutofuseReduceAddvSum.

    Words of letters only, each with one capital: CANN derives file and function names from the type, and only
    so there is one way to do it. What is in `taken` already gets another last word.
    """
    words = (re.sub(r"[^a-z]", "", part.lower()) for part in fused_name.split("_"))
    name = "".join(word.capitalize() for word in words if word)
    while len(name) > _LONGEST_TYPE:
        name = re.sub(r"[A-Z][a-z]*\Z", "", name) or name[:_LONGEST_TYPE]
    known, number, candidate = set(taken), 1, name or "Autofuse"
    while candidate in known:
        number += 1
        candidate = (name or "Autofuse") + "No" + _letters(number)
    return candidate


def _letters(number: int) -> str:
    """1 is a, 26 is z, 27 is aa."""
    text = ""
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def symbol_of(type_name: str) -> str:
    """The kernel's entry for an op type, as CANN derives it: AutofuseReduceSum is autofuse_reduce_sum."""
    return re.sub(r"(?<!\A)([A-Z])", r"_\1", type_name).lower()


def project_op(
    type_name: str,
    fused: FusedGraph,
    impls: Sequence[ImplGraph],
    machine: Machine,
    regions: Sequence[str],
) -> ProjectOp:
    """One op of a project. Raises CodegenRefusal as generate() does."""
    symbol = symbol_of(type_name)
    sources = generate(replace(fused, name=symbol), impls, machine, None)
    assert sources.symbol == symbol
    nests = nests_of(fused, impls)
    tensors = [("Input", "x%d" % i, io) for i, io in enumerate(fused.inputs)]
    tensors += [("Output", "y%d" % i, io) for i, io in enumerate(fused.outputs)]
    return ProjectOp(
        type_name,
        symbol,
        sources,
        tuple(
            Tensor(kind, name, _ge_type(io.dtype), io.dtype.name, ", ".join(map(to_text, io.dims)))
            for kind, name, io in tensors
        ),
        [len(io.dims) for io in fused.inputs],
        [len(io.dims) for io in fused.outputs],
        [dim if isinstance(dim, int) else -1 for io in fused.outputs for dim in io.dims],
        [_ge_type(io.dtype) for io in fused.outputs],
        len(fused.sizes),
        usable_ub(machine, False),
        has_frame(nests),
        any(nest.reads for nest in nests),
        tuple(regions),
    )


def _ge_type(dtype: DType) -> str:
    return _GE_TYPES.get(dtype.name, "ge::DT_" + dtype.name.upper())


def project_files(
    ops: Sequence[ProjectOp], machine: Machine, vendor: str, helpers: Path
) -> Dict[str, str]:
    """The project's files: path below its folder -> text.

    vendor: the name that the package is installed under. helpers: the folder of autofuse/*.h. Raises
    ValueError for a chip of another family or without ops.
    """
    if not ops:
        raise ValueError("a project needs at least one op")
    unit = compute_unit(machine.soc)
    values: Dict[str, Any] = {"ops": ops, "soc": machine.soc, "unit": unit, "vendor": vendor}
    files = {
        "CMakeLists.txt": "CMakeLists.txt",
        "README.md": "README.md",
        "build.sh": "build.sh",
        "op_host/CMakeLists.txt": "op_host.cmake",
        "op_host/autofuse_op.h": "autofuse_op.h",
        "op_kernel/CMakeLists.txt": "op_kernel.cmake",
        "framework/CMakeLists.txt": "framework.cmake",
        "framework/tf_plugin.cpp": "tf_plugin.cpp",
    }
    texts = {path: render_text("project/%s.j2" % name, values) for path, name in files.items()}
    texts["CMakePresets.json"] = json.dumps(_presets(unit, vendor), indent=2) + "\n"
    texts["ops.json"] = json.dumps([_described(op) for op in ops], indent=2) + "\n"
    for op in ops:
        texts["op_host/%s.cpp" % op.symbol] = render_text("project/op.cpp.j2", dict(values, op=op))
        host, kernel = "op_host/%s/" % op.symbol, "op_kernel/%s/" % op.symbol
        texts[host + HOST_SOURCE] = op.sources.text(HOST_SOURCE)
        texts[host + TILING_HEADER] = texts[kernel + TILING_HEADER] = op.sources.text(TILING_HEADER)
        texts[kernel + op.symbol + ".cpp"] = op.sources.text(DEVICE_SOURCE)
        for name, text in _headers(op.sources.text(DEVICE_SOURCE), helpers).items():
            texts[kernel + "autofuse/" + name] = text
    return texts


def _headers(source: str, helpers: Path) -> Dict[str, str]:
    """The helpers that a kernel includes, and those that they include."""
    found: Dict[str, str] = {}
    open_names: Set[str] = set(_INCLUDE.findall(source))
    while open_names:
        name = open_names.pop()
        path = helpers / "autofuse" / name
        if name not in found and path.is_file():  # kernel_operator.h and tiling_data.h are not among them
            found[name] = path.read_text(encoding="utf-8")
            open_names.update(_INCLUDE.findall(found[name]))
    return found


def _presets(unit: str, vendor: str) -> Dict[str, Any]:
    variables = [
        ("CMAKE_BUILD_TYPE", "STRING", "Release"),
        ("ENABLE_SOURCE_PACKAGE", "BOOL", "True"),
        ("ENABLE_BINARY_PACKAGE", "BOOL", "True"),
        ("ASCEND_COMPUTE_UNIT", "STRING", unit),
        ("vendor_name", "STRING", vendor),
    ]
    return {
        "version": 1,
        "cmakeMinimumRequired": {"major": 3, "minor": 19, "patch": 0},
        "configurePresets": [
            {
                "name": "default",
                "displayName": "The op package",
                "generator": "Unix Makefiles",
                "binaryDir": "${sourceDir}/build_out",
                "cacheVariables": {n: {"type": kind, "value": value} for n, kind, value in variables},
            }
        ],
    }


def _described(op: ProjectOp) -> Dict[str, Any]:
    return {
        "type": op.type,
        "kernel": op.symbol,
        "inputs": [_argument(t) for t in op.tensors if t.kind == "Input"],
        "outputs": [_argument(t) for t in op.tensors if t.kind == "Output"],
        "regions": list(op.regions),
    }


def _argument(tensor: Tensor) -> Dict[str, str]:
    return {"name": tensor.name, "dtype": tensor.type_name, "dims": tensor.dims}
