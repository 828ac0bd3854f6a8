"""Invariants G1..G7 at the head of asc_graph.py: what holds of HintGraphs and ImplGraphs alike.

On entry any AscGraph; on exit its nodes are sound one by one (names, references, dtypes, symbols,
attributes), or a VerifyError says which is not. ir/verify.py and ir/verify_impl.py add what each form
promises beyond that.
"""
import math
import re
from typing import Iterable, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, AxisType
from tf_autofuse.ir.dtypes import ALL_DTYPES, BFLOAT16, BOOL, DType, INT32, INT64
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import SizeExpr, symbols_of

STRUCTURAL = ("Data", "Scalar", "Load", "Gather", "Broadcast", "Store", "Output", "Workspace")
#: Least and most inputs of structural nodes (most -1: any number).
_INPUT_COUNT = {
    "Data": (0, 0),
    "Scalar": (0, 0),
    "Gather": (2, 2),
    "Output": (1, -1),
    "Workspace": (0, -1),
}
_INDEX_DTYPES = (INT32, INT64)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class VerifyError(Exception):
    """An IR value breaks an invariant. graph, node ('' for the graph itself), invariant (its number),
    found."""

    def __init__(self, graph: str, node: str, invariant: str, found: str):
        super().__init__("%s%s breaks %s: %s" % (graph, ", node %s" % node if node else "", invariant, found))
        self.graph, self.node, self.invariant, self.found = graph, node, invariant, found


class Checker:
    """Raises VerifyErrors of one graph. Sizes go into the texts as they are: most are never printed."""

    def __init__(self, graph: str):
        self.graph = graph

    def require(self, holds: bool, invariant: str, node: Optional[AscNode], found: str, *args) -> None:
        if not holds:
            raise VerifyError(
                self.graph, node.name if node else "", invariant, found % args if args else found
            )


def represents(dtype: DType, value) -> bool:
    """Whether the Python number or bool `value` is an element of dtype, exactly (a float NaN is)."""
    if dtype is BOOL or isinstance(value, bool):
        return dtype is BOOL and isinstance(value, bool)
    if not dtype.is_floating:
        return isinstance(value, int) and np.iinfo(dtype.numpy).min <= value <= np.iinfo(dtype.numpy).max
    if not isinstance(value, (int, float)):
        return False
    try:
        wide = float(value)
    except OverflowError:
        return False
    if wide != value:
        return math.isnan(wide)
    if math.isinf(wide):
        return True
    if dtype is BFLOAT16:
        with np.errstate(over="ignore"):
            single = np.float32(wide)
        return float(single) == wide and int(np.array(single).view(np.uint32)) & 0xFFFF == 0
    with np.errstate(over="ignore"):
        return float(dtype.numpy(wide)) == wide


def _is_attr_value(value) -> bool:
    if isinstance(value, tuple) and not isinstance(value, DType):
        return all(map(_is_attr_value, value))
    return isinstance(value, (int, float, str, SizeExpr, DType))


def _symbols_in_attr(value) -> Iterable[str]:
    if isinstance(value, SizeExpr):
        return symbols_of(value)
    if isinstance(value, tuple) and not isinstance(value, DType):
        return [name for v in value for name in _symbols_in_attr(v)]
    return ()


def check_sizes(check: Checker, sizes: Tuple[SizeVar, ...], invariant: str, input_ranks=None) -> None:
    """Names unique and valid, sources before uses. input_ranks: ranks of the kernel's inputs, where known."""
    known = set()
    for var in sizes:
        check.require(
            bool(_NAME.match(var.name)) and var.name not in known,
            invariant,
            None,
            "symbol %r is no identifier or listed twice",
            var.name,
        )
        if isinstance(var.source, InputDim):
            if input_ranks is not None:
                check.require(
                    0 <= var.source.input < len(input_ranks)
                    and 0 <= var.source.dim < input_ranks[var.source.input],
                    invariant,
                    None,
                    "symbol %s is read off dim %d of input %d, which is not there",
                    var.name,
                    var.source.dim,
                    var.source.input,
                )
        else:
            late = sorted(symbols_of(var.source) - known)
            check.require(
                not late,
                invariant,
                None,
                "symbol %s comes from %s, where %s is not yet known",
                var.name,
                var.source,
                ", ".join(late),
            )
        known.add(var.name)


def check_nodes(
    check: Checker, graph: AscGraph, extra_types: Sequence[str] = (), extra_symbols: Iterable[str] = ()
):
    """G1..G7. extra_types: node types that this form has besides the structural and the op table's."""
    check_sizes(check, graph.sizes, "G4")
    declared = {v.name for v in graph.sizes} | set(extra_symbols)

    def declared_only(sizes, node, what):
        for size in sizes:
            missing = sorted(symbols_of(size) - declared)
            check.require(
                not missing,
                "G4",
                node,
                "%s %s uses %s, which sizes does not list",
                what,
                size,
                ", ".join(missing),
            )

    ids = [a.id for a in graph.axes]
    named = [a for a in graph.axes if not (a.type is AxisType.MERGED and len(a.from_axes) == 1)]
    check.require(
        len(set(ids)) == len(ids) and len({a.name for a in named}) == len(named),
        "G7",
        None,
        "two axes share an id or a name: %s",
        ", ".join("%d %s" % (a.id, a.name) for a in graph.axes),
    )
    declared_only([a.size for a in graph.axes], None, "axis size")
    earlier = {}
    indexes = set()
    for node in graph.nodes:
        check.require(
            bool(_NAME.match(node.name)) and node.name not in earlier,
            "G1",
            node,
            "the name is no identifier or taken",
        )
        for ref in node.inputs:
            check.require(ref.node in earlier, "G1", node, "input %s is no earlier node", ref.node)
            check.require(
                0 <= ref.output < len(earlier[ref.node].outputs),
                "G1",
                node,
                "%s has no output %d",
                ref.node,
                ref.output,
            )
            check.require(
                earlier[ref.node].type not in ("Output",), "G1", node, "reads the Output %s", ref.node
            )
        check.require(len(node.outputs) >= 1, "G1", node, "has no output")
        for y in node.outputs:
            check.require(
                len(y.axis) == len(y.repeats) == len(y.strides),
                "G7",
                node,
                "%d axes, %d repeats, %d strides",
                len(y.axis),
                len(y.repeats),
                len(y.strides),
            )
            check.require(
                set(y.axis) <= set(ids),
                "G7",
                node,
                "view over axes %s that the graph does not have",
                sorted(set(y.axis) - set(ids)),
            )
            check.require(y.dtype in ALL_DTYPES, "G2", node, "unknown dtype %r", y.dtype)
            declared_only(y.repeats + y.strides + y.vectorized_strides, node, "size")
        _check_attrs(check, graph, node, declared)
        _check_type(check, graph, node, earlier, extra_types)
        if node.type in ("Data", "Output", "Workspace"):
            key = (node.type, node.attr("index"), bool(node.inputs))
            check.require(key not in indexes, "G6", node, "a second %s of index %d", node.type, key[1])
            indexes.add(key)
        earlier[node.name] = node


def check_every_node_is_read(check: Checker, graph: AscGraph) -> None:
    """G6, last: a node that lost its reader to another mistake should be told by that mistake."""
    used = {ref.node for node in graph.nodes for ref in node.inputs}
    for node in graph.nodes:
        if node.name not in used:
            check.require(
                node.type == "Output" or (node.type == "Workspace" and bool(node.inputs)),
                "G6",
                node,
                "nothing reads it",
            )


def _check_attrs(check: Checker, graph: AscGraph, node: AscNode, declared) -> None:
    names = [name for name, _ in node.attrs]
    check.require(names == sorted(set(names)), "G5", node, "attrs are not sorted or not unique: %s", names)
    for name, value in node.attrs:
        check.require(
            isinstance(name, str) and _is_attr_value(value),
            "G5",
            node,
            "attr %s holds a %s",
            name,
            type(value).__name__,
        )
        for symbol in _symbols_in_attr(value):
            check.require(
                symbol in declared, "G4", node, "attr %s uses %s, which sizes does not list", name, symbol
            )
    index = node.attr("index")
    if node.type in ("Data", "Output", "Workspace"):
        private = graph.form == "impl" and node.type == "Workspace"
        check.require(type(index) is int and (index >= 0 or private), "G5", node, "index is %r", index)
    if node.type == "Scalar":
        value = node.attr("value")
        symbolic = isinstance(value, SizeExpr) and node.y.dtype is not BOOL
        check.require(
            symbolic or represents(node.y.dtype, value),
            "G5",
            node,
            "%s does not represent the value %r exactly",
            node.y.dtype.name,
            value,
        )
    if node.type == "Broadcast" and graph.form == "hint":
        check.require(
            node.attr("axis") in {a.id for a in graph.axes}, "G5", node, "axis is %r", node.attr("axis")
        )
    wanted = {"Load": ("offset",), "Store": ("offset",), "Gather": ("offset", "index_stride", "index_size")}
    for name in wanted.get(node.type, ()):
        size = node.attr(name, 0 if name == "offset" else None)
        check.require(type(size) is int or isinstance(size, SizeExpr), "G5", node, "%s is %r", name, size)


def _check_type(check: Checker, graph: AscGraph, node: AscNode, earlier, extra_types) -> None:
    ins = [earlier[r.node].outputs[r.output].dtype for r in node.inputs]
    if node.type in STRUCTURAL or node.type in extra_types:
        least, most = _INPUT_COUNT.get(node.type, (1, 1))
        check.require(
            least <= len(ins) and (len(ins) <= most or most < 0),
            "G3",
            node,
            "%s has %d inputs",
            node.type,
            len(ins),
        )
        if node.type == "Gather":
            index = ins.pop()
            check.require(index in _INDEX_DTYPES, "G2", node, "an index of %s", index.name)
        check.require(
            all(d is node.y.dtype for d in ins),
            "G2",
            node,
            "%s of %s gives %s",
            node.type,
            ", ".join(d.name for d in ins),
            node.y.dtype.name,
        )
        return
    from tf_autofuse.ops.numpy_handler import result_dtype
    from tf_autofuse.ops.table import ASC_OPS

    row = ASC_OPS.get(node.type)
    check.require(row is not None, "G3", node, "the op table has no AscIR type %s", node.type)
    check.require(
        len(ins) == row.arity if row.arity >= 0 else len(ins) >= 1,
        "G3",
        node,
        "%s has %d inputs, not %d",
        node.type,
        len(ins),
        row.arity,
    )
    values = ins[1:] if len(ins) > 1 and ins[0] is BOOL else ins
    check.require(
        len(set(values)) == 1, "G2", node, "inputs of different dtypes: %s", ", ".join(d.name for d in ins)
    )
    expected = result_dtype(node.type, ins, node.y.dtype)
    check.require(
        node.y.dtype is expected,
        "G2",
        node,
        "%s of %s gives %s, not %s",
        node.type,
        ", ".join(d.name for d in ins),
        expected.name,
        node.y.dtype.name,
    )
    if row.reduces and graph.form == "hint":
        axes = node.attr("axes")
        known = [a.id for a in graph.axes]
        check.require(
            isinstance(axes, tuple) and bool(axes) and [i for i in known if i in axes] == list(axes),
            "H8",
            node,
            "axes %r are not some of the loop axes, in their order",
            axes,
        )
