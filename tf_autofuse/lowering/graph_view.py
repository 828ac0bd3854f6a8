"""GraphView: the TF graph as lowering sees it: columns, read-only, without TensorFlow.

Why: walking protobuf or TF node objects from Python costs more than all of lowering. The native side hands
over plain lists; a view keeps them as they are and computes what is derived from them on first use.

On entry (`from_columns`): the native side's dict of columns; index = node id, in topological order but for
while-loop back edges (NextIteration -> Merge). On exit nothing is ever changed.

Columns
    names, ops, devices, frames     str per node; frames: nested names joined by '/', '' outside of loops
    inputs                          per node a tuple of (source id, source port)
    control_inputs                  per node a tuple of ids
    in_dtypes, out_dtypes           per node a tuple of TF DataType numbers, > 100 for references
    out_shapes                      per node and output: None (unknown rank) or a tuple of ints; d >= 0 is
                                    known, d < 0 is the run-time dim number -d - 1
    attrs                           per node a dict
    constants                       id -> numpy array, of Const nodes of moderate size (bfloat16 as uint16)
    stateful                        bool per node
    symbols                         per run-time dim a dict: origin (tensor name), dim, hint (or None)
"""

from typing import Any, List, Mapping, Optional, Tuple

from tf_autofuse.ir.dtypes import BY_TF, DType

Tensor = Tuple[int, int]

REQUIRED = (
    "names",
    "ops",
    "devices",
    "inputs",
    "control_inputs",
    "in_dtypes",
    "out_dtypes",
    "out_shapes",
    "attrs",
    "frames",
    "stateful",
)


class GraphView:
    """See the head of the file. The columns are attributes of the same names."""

    __slots__ = REQUIRED + ("constants", "symbols", "_consumers", "_control_outputs", "_liveness")

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> "GraphView":
        """Raises ValueError where a column is missing or has another length than `names`."""
        view = cls()
        for name in REQUIRED:
            column = columns.get(name)
            if column is None or len(column) != len(columns["names"]):
                raise ValueError("column %r is missing or does not have one entry a node" % name)
            setattr(view, name, column)
        view.constants = columns.get("constants") or {}
        view.symbols = columns.get("symbols") or ()
        view._consumers = view._control_outputs = view._liveness = None
        return view

    def __len__(self) -> int:
        return len(self.names)

    @property
    def consumers(self) -> List[Tuple[int, ...]]:
        """Per node the ids of the nodes that read one of its outputs, once each, ascending."""
        if self._consumers is None:
            readers: List[List[int]] = [[] for _ in self.names]
            for node, inputs in enumerate(self.inputs):
                for source, _ in inputs:
                    mine = readers[source]
                    if not mine or mine[-1] != node:
                        mine.append(node)
            self._consumers = [tuple(r) for r in readers]
        return self._consumers

    @property
    def control_outputs(self) -> List[Tuple[int, ...]]:
        """Per node the ids of the nodes that have it as control input."""
        if self._control_outputs is None:
            followers: List[List[int]] = [[] for _ in self.names]
            for node, inputs in enumerate(self.control_inputs):
                for source in inputs:
                    followers[source].append(node)
            self._control_outputs = [tuple(f) for f in followers]
        return self._control_outputs

    def is_back_edge(self, source: int, node: int) -> bool:
        """Whether source -> node closes a while loop."""
        return self.ops[node] in ("Merge", "RefMerge") and self.ops[source] in (
            "NextIteration",
            "RefNextIteration",
        )

    def node(self, id_: int, operands=None) -> "NodeRef":
        """operands: the lowering's ShapeValues, for NodeRef.operand."""
        return NodeRef(self, id_, operands)


class NodeRef:
    """One node, in the form in which an op's lowering asks about it."""

    __slots__ = ("view", "id", "op", "operands")

    def __init__(self, view: GraphView, id_: int, operands=None):
        self.view = view
        self.operands = operands
        self.id = id_
        self.op = view.ops[id_]

    @property
    def name(self) -> str:
        return self.view.names[self.id]

    @property
    def in_dtypes(self) -> Tuple[Optional[DType], ...]:
        return tuple(BY_TF.get(d) for d in self.view.in_dtypes[self.id])

    @property
    def out_dtypes(self) -> Tuple[Optional[DType], ...]:
        return tuple(BY_TF.get(d) for d in self.view.out_dtypes[self.id])

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute, text as str."""
        value = self.view.attrs[self.id].get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def operand(self, at: int) -> Optional[Tuple[int, ...]]:
        """The elements of input `at` where they are integers that are known while compiling."""
        if self.operands is None or at >= len(self.view.inputs[self.id]):
            return None
        value = self.operands.operand(self.id, at)
        if value is None or not all(isinstance(e, int) for e in value.elements):
            return None
        return value.elements
