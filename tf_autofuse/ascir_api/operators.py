"""ascir.ops: one class per operator, made from operators_table, and ascir's views and attributes.

An operator object is a handle: what it says goes to its Node (graphs.py) at once. Members `name` and `type`
are the handle's own. A node enters a graph when a start operator is made with one, or when an input is
linked from a node that is in a graph; linking from a node that is in none does nothing, as in the API."""

from typing import Dict, List, Tuple

import numpy as np

from tf_autofuse.ascir_api import dtypes
from tf_autofuse.ascir_api import expression as ex
from tf_autofuse.ascir_api.graphs import FusedGraph, HintGraph, Node, axis_ids, copy_state, state_of
from tf_autofuse.ascir_api.inference import infer_node
from tf_autofuse.ascir_api.operators_table import ROWS, Row
from tf_autofuse.ascir_api.sizes import SizeExpr, expression_of, size_of, wrap, wrong_type

_MAX_OUTPUTS = 2**32 - 1
#: compute_type: setter's word -> getter's word.
_COMPUTE_TYPES = {
    word: word for word in "load gather store broadcast reduce transpose concat cube split".split()
}
_COMPUTE_TYPES["elemwise"] = "elewise"
#: Operators whose one input may be a list all the same: several Stores that write parts of one output.
_SEVERAL_SOURCES = ("Output",)


class OpsOperatorOutput:
    """The view of an operator's output: dtype, axis, size, strides. The getters give fresh lists."""

    __slots__ = ("_node", "_number")

    def __init__(self, *arguments, **more):
        raise TypeError("cannot create 'OpsOperatorOutput' instances")

    @property
    def _tensor(self):
        return self._node.outputs[self._number]

    @property
    def dtype(self) -> int:
        return self._tensor.dtype

    @dtype.setter
    def dtype(self, value):
        if not isinstance(value, int):
            raise TypeError("an integer is required (got type %s)" % type(value).__name__)
        self._tensor.dtype = int(value)

    @property
    def axis(self) -> List[int]:
        return list(self._tensor.axis)

    @axis.setter
    def axis(self, value):
        self._tensor.axis = axis_ids(value)

    @property
    def size(self) -> List[SizeExpr]:
        return [wrap(e) for e in self._tensor.size]

    @size.setter
    def size(self, value):
        self._tensor.size = _expressions(value, "repeats")

    @property
    def strides(self) -> List[SizeExpr]:
        return [wrap(e) for e in self._tensor.strides]

    @strides.setter
    def strides(self, value):
        self._tensor.strides = _expressions(value, "strides")


def _expressions(value, what: str) -> List[ex.Expression]:
    if not isinstance(value, list):
        raise TypeError("value must be a list")
    found = []
    for i, v in enumerate(value):
        e = expression_of(v)
        if e is None:
            raise ValueError("%s on %d is not SizeExpr or long type." % (what, i))
        found.append(e)
    return found


def _view(node: Node, number: int) -> OpsOperatorOutput:
    view = OpsOperatorOutput.__new__(OpsOperatorOutput)
    view._node, view._number = node, number
    return view


class ApiInfo:
    """attr.api"""

    __slots__ = ("_node",)

    def __init__(self, node):
        self._node = node

    @property
    def compute_type(self) -> str:
        return self._node.compute

    @compute_type.setter
    def compute_type(self, word):
        if not isinstance(word, str) or word not in _COMPUTE_TYPES:
            raise ValueError("unknown compute type")
        self._node.compute = _COMPUTE_TYPES[word]


class SchedInfo:
    """attr.sched"""

    __slots__ = ("_node",)

    def __init__(self, node):
        self._node = node

    @property
    def axis(self) -> List[int]:
        return list(self._node.axis)

    @axis.setter
    def axis(self, value):
        self._node.axis = axis_ids(value)


class AscNodeAttr:
    """An operator's `attr`: api, sched and, where the operator has attributes of its own, ir_attr."""

    __slots__ = ("api", "sched", "ir_attr")

    def __init__(self, node, ir_attr_class=None):
        self.api, self.sched = ApiInfo(node), SchedInfo(node)
        if ir_attr_class is not None:
            self.ir_attr = ir_attr_class(node)


_C_TYPES = {"int": "int64_t", "float": "float", "bool": "bool", "str": "std::string"}
_UNSET = {"int": 0, "float": 0.0, "bool": False, "str": ""}


def _attribute(op: str, name: str, kind: str) -> property:
    if kind == "SizeExpr":

        def get_size(self):
            if name not in self._node.attributes:
                raise TypeError("%s attr %s is not set" % (op, name))
            return wrap(self._node.attributes[name])

        def set_size(self, value):
            self._node.attributes[name] = size_of(value, wrong_type())._e

        return property(get_size, set_size)

    def get(self):
        return self._node.attributes.get(name, _UNSET[kind])

    def put(self, value):
        expected = {"int": int, "float": float, "bool": bool, "str": str}[kind]
        if not isinstance(value, expected):
            raise TypeError("%s attr %s expected %s" % (op, name, _C_TYPES[kind]))
        # a C float: what is read back is what the kernel gets
        self._node.attributes[name] = float(np.float32(value)) if kind == "float" else expected(value)

    return property(get, put)


def _ir_attr_class(row: Row):
    if not row.attributes:
        return None
    body = {"__slots__": ("_node",), "__init__": lambda self, node: setattr(self, "_node", node)}
    body.update({name: _attribute(row.name, name, kind) for name, kind in row.attributes})
    return type(row.name + "IrAttr", (), body)


class Operator:
    """Base of all operators. `name` and `type` are members of the handle."""

    __slots__ = ("name", "type", "attr", "_node", "_outputs", "__weakref__")
    __hash__ = object.__hash__

    def __init__(self, *arguments, **ignored):
        if len(arguments) != 2 or not all(isinstance(a, str) for a in arguments):
            raise TypeError("Operator expects (name, type)")
        self.name, self.type = arguments

    def infer_dtype(self) -> None:
        """Infers or checks the dtypes of this node's outputs. Raises TypeError."""
        infer_node(self._node)


def _source(value) -> Tuple[Node, int]:
    if isinstance(value, OpsOperatorOutput):
        return value._node, value._number
    node = getattr(value, "_node", None) if isinstance(value, Operator) else None
    if node is None or not node.outputs:
        raise TypeError("Input Type is invalid.")
    return node, 0


def _link(node: Node, position: int, source: Tuple[Node, int]) -> None:
    graph = source[0].graph
    if graph is None:
        return
    graph.enter(node)
    node.inputs[position] = source


def _link_list(node: Node, values) -> None:
    """Links a whole list. All elements are checked before anything changes."""
    sources = [_source(v) for v in values]
    node.inputs = [None] * len(sources)
    for position, source in enumerate(sources):
        _link(node, position, source)


def _write_only(name: str):
    def read(self):
        raise AttributeError("input %s can only be assigned" % name)

    return read


def _input(row: Row, position: int) -> property:
    port = row.inputs[position]

    def assign(self, value):
        if port.is_list:
            if not isinstance(value, list):
                raise TypeError("Input Type is invalid.")
            if self._node.inputs:
                raise TypeError("%s %s has its inputs already" % (self._node.name, self._node.type))
            _link_list(self._node, value)
        elif row.name in _SEVERAL_SOURCES and isinstance(value, list):
            _link_list(self._node, value)
        else:
            _link(self._node, position, _source(value))

    return property(_write_only(port.name), assign)


def _output(position: int) -> property:
    return property(lambda self: self._outputs[position])


def _parse(arguments, takes_count: bool):
    """(name, graph state or None, number of outputs or None) of a constructor's arguments. Raises TypeError,
    OverflowError."""
    expects = (
        "Operator expects (name[, output_num][, graph])"
        if takes_count
        else "Operator expects (name[, graph])"
    )
    if not arguments or len(arguments) > (3 if takes_count else 2):
        raise TypeError(expects)
    name, graph, count = arguments[0], None, None
    if not isinstance(name, str):
        raise TypeError("Operator name must be str.")
    for value in arguments[1:]:
        if isinstance(value, (HintGraph, FusedGraph)):
            if graph is not None:
                raise TypeError("Graph arg is duplicated.")
            graph = state_of(value)
        elif takes_count and isinstance(value, int):
            if count is not None:
                raise TypeError("Dynamic output num is duplicated.")
            if not 0 <= value <= _MAX_OUTPUTS:
                raise OverflowError("Dynamic output num is out of range.")
            count = int(value)
        else:
            raise TypeError(expects)
    return name, graph, count


def _make_class(row: Row):
    ir_attr_class = _ir_attr_class(row)
    takes_count = any(port.is_list for port in row.outputs)

    def __init__(self, *arguments, **ignored):
        name, graph, count = _parse(arguments, takes_count)
        if row.is_start and graph is None:
            raise TypeError("Operator expects (name[, graph])")
        names = ["y%d" % i for i in range(count or 0)] if takes_count else [p.name for p in row.outputs]
        inputs = 0 if any(p.is_list for p in row.inputs) else len(row.inputs)
        node = Node(name, row.name, row, inputs, names)
        if row.name == "Data":
            node.outputs[0].dtype = dtypes.NUMBERS["float32"]
        self.name, self.type, self._node = name, row.name, node
        self.attr = AscNodeAttr(node, ir_attr_class)
        views = [_view(node, i) for i in range(len(names))]
        self._outputs = [views] if takes_count else views
        if row.is_start:
            graph.enter(node)

    body = {"__slots__": (), "__init__": __init__, "__doc__": "Operator %s." % row.name}
    body.update({port.name: _input(row, i) for i, port in enumerate(row.inputs)})
    body.update({port.name: _output(i) for i, port in enumerate(row.outputs)})
    return type(row.name, (Operator,), body)


def _make_wrapper(type_: str, keeps_live_graph: bool):
    def __init__(self, *arguments, **ignored):
        if not 2 <= len(arguments) <= 3:
            raise TypeError("Operator expects (name[, graph])")
        name, inner = arguments[:2]
        if not isinstance(name, str):
            raise TypeError("Operator name must be str.")
        if not isinstance(inner, HintGraph):
            raise TypeError("The asc graph node requires hitgraph to be passed in as an input parameter.")
        state = state_of(inner)
        for sink in state.of_type("Output"):
            if "index" not in sink.attributes:
                raise TypeError("Op %s %s must set ir_attr for index." % (sink.name, sink.type))
        count = len({sink.attributes["index"] for sink in state.of_type("Output")})
        node = Node(
            name, type_, None, len(state.of_type("Data", "ScalarData")), ["y%d" % i for i in range(count)]
        )
        node.subgraph = state if keeps_live_graph else copy_state(state)
        if not node.inputs:
            if len(arguments) < 3:
                raise TypeError(
                    "The asc graph node requires fusedgraph to be passed in as an input parameter when "
                    "has no inputs."
                )
            if not isinstance(arguments[2], FusedGraph):
                raise TypeError("The asc graph node requires fusedgraph type.")
            state_of(arguments[2]).enter(node)
        self.name, self.type, self._node = name, type_, node
        self._outputs = [_view(node, i) for i in range(count)]

    def assign(self, value):
        if not isinstance(value, list):
            raise TypeError("Input Type is invalid.")
        sources = [_source(v) for v in value]
        if len(sources) != len(self._node.inputs):
            raise TypeError(
                "%s %s should has %d input but given %d"
                % (self._node.name, type_, len(self._node.inputs), len(sources))
            )
        for position, source in enumerate(sources):
            _link(self._node, position, source)

    return type(
        type_,
        (Operator,),
        {
            "__slots__": (),
            "__init__": __init__,
            "__doc__": "A HintGraph as a node of a FusedGraph.",
            "x": property(_write_only("x"), assign),
            "y": property(lambda self: self._outputs),
        },
    )


CLASSES: Dict[str, type] = {name: _make_class(row) for name, row in ROWS.items()}
CLASSES["AscBackend"] = _make_wrapper("AscBackend", True)
CLASSES["AscGraph"] = _make_wrapper("AscGraph", False)

__all__ = ["ApiInfo", "AscNodeAttr", "CLASSES", "Operator", "OpsOperatorOutput", "SchedInfo"]
