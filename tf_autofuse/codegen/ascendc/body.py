"""The statements of one kernel variant: from an ImplGraph's nodes to lines of Ascend C.

Three orders are kept, which is all the synchronisation that a kernel needs (it is built with the compiler's
own synchronisation off):
    queues    AllocTensor, fill, EnQue, DeQue, read, FreeTensor: they order copy pipes with the vector pipe
    barriers  PipeBarrier<PIPE_V> stands before an instruction that reads, or writes over, what a vector
              instruction since the last barrier wrote; also across the end of the tile loop
    order     program order, for what one pipe does alone
On entry: an ImplGraph that keeps the contract at the head of schedule/impl_graph.py.
"""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.codegen.ascendc import transfers
from tf_autofuse.codegen.ascendc.expressions import Expressions
from tf_autofuse.codegen.ascendc.gathers import FAILED, gather
from tf_autofuse.codegen.ascendc.literals import literal, needs_from_bits
from tf_autofuse.ir.asc_graph import AscNode, Position, TensorRef
from tf_autofuse.ir.dtypes import FLOAT32, INT32, DType
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.axes import is_reduction
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.symbolic.size import SizeExpr
from tf_autofuse.tiling.cpp import RunTimeValue

BARRIER, TMP = transfers.BARRIER, transfers.TMP
_RESERVED = {TMP, FAILED, "pipe", "t", "total", "begin", "end", "i", "rest", "workspace", "tiling", "block"}


class CodegenRefusal(Exception):
    """The graph has no Ascend C form; `reason` is a sentence for `explain`."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class Local(NamedTuple):
    """A tensor that lives in a buffer for the whole kernel: `LocalTensor<type> name = buffer.Get<type>()`."""

    name: str
    type: str
    buffer: str


class KernelBody(NamedTuple):
    """hoisted: before the tile loop; loop: inside; after: behind it. locals: VECCALC tensors. headers: helper
    headers, sorted. constants: whether a literal calls FromBits."""

    hoisted: Tuple[str, ...]
    loop: Tuple[str, ...]
    after: Tuple[str, ...]
    locals: Tuple[Local, ...]
    headers: Tuple[str, ...]
    constants: bool


def comment(text: str) -> str:
    """Text that is safe behind `//`: one line, no line continuation, ASCII."""
    safe = "".join(c if 32 <= ord(c) < 127 else "?" for c in text.replace("\\", "/"))
    return "// " + safe


def compute_dtype(node: AscNode, impl: ImplGraph) -> DType:
    """The dtype of the compute inputs: that of the last input."""
    return impl.graph.tensor(node.inputs[-1]).dtype


def call_form(node: AscNode, impl: ImplGraph, form: str = "") -> Tuple[AscOp, str]:
    """The op's row and the call text for this node's dtypes and its form, by default that for its Scalar
    inputs. Raises CodegenRefusal."""
    row = ASC_OPS.get(node.type)
    if row is None:
        raise CodegenRefusal("the AscIR type %s is not in the op table" % node.type)
    key = row.form_key([impl.graph.tensor(r).dtype for r in node.inputs], node.y.dtype)
    forms = row.ascend.get(key)
    scalars = [i for i, ref in enumerate(node.inputs) if impl.graph.node(ref.node).type == "Scalar"]
    form = form or ("tensor" if not scalars else "scalar%s" % "".join(map(str, scalars)))
    if forms is None or form not in forms:
        raise CodegenRefusal(
            "%s on %s has no %s form in Ascend C"
            % (node.type, " to ".join(d.name for d in key) if isinstance(key, tuple) else key.name, form)
        )
    return row, forms[form]


class BodyWriter:
    """Writes the statements of one ImplGraph; one use."""

    def __init__(self, impl: ImplGraph, expressions: Expressions, workspace: Callable[[AscNode], str],
                 values: Sequence[RunTimeValue]):
        """workspace: the name of the workspace that a Workspace node stands for. values: what Scalars stand
        for that are known at run time only."""
        self.impl, self.graph, self.expressions = impl, impl.graph, expressions
        self.workspace = workspace
        self.values = values
        self.hoisted_nodes, self.body_nodes = impl.hoisted, impl.body
        self.names = self._local_names()
        self.readers = self._readers()
        self.lines: List[str] = []
        self.after: List[str] = []
        self.locals: Dict[str, Local] = {}
        self.headers: Set[str] = set()
        self.constants = False
        self.waiting: Set[TensorRef] = set()  # Load results between EnQue and DeQue
        self.queued_out: Set[TensorRef] = set()  # VECOUT tensors that have been handed to MTE3
        self.written: Set[str] = set()  # what vector instructions wrote since the last barrier,
        self.read: Set[str] = set()  # and what they read
        # whether a barrier stands before the loop's first vector instruction
        self.first_waits: Optional[bool] = None

    def write(self) -> KernelBody:
        for node in self.hoisted_nodes:
            self._node(node)
        for ref in sorted(self.waiting):
            self._dequeue(ref)
        unfinished = bool(self.written or self.read)
        hoisted, self.lines = self.lines, []
        # The loop's end meets its beginning: what the last tile's instructions still do counts as done just
        # now.
        self.written.clear()
        self.read = self._buffers_of(self.body_nodes)
        self.first_waits = None
        for node in self.body_nodes:
            self._node(node)
        if unfinished and not self.first_waits:
            hoisted.append(BARRIER)
        return KernelBody(
            tuple(hoisted),
            tuple(self.lines),
            tuple(self.after),
            tuple(self.locals[k] for k in sorted(self.locals)),
            tuple(sorted(self.headers)),
            self.constants,
        )

    def _local_names(self) -> Dict[str, str]:
        names: Dict[str, str] = {}
        taken = set(_RESERVED)
        for node in self.graph.nodes:
            base = re.sub(r"\W", "_", node.name, flags=re.ASCII)
            if base[:1].isdigit():
                base = "v_" + base
            name, n = base, 1
            while name in taken:
                name, n = "%s_%d" % (base, n), n + 1
            taken.add(name)
            names[node.name] = name
        return names

    def _readers(self) -> Dict[TensorRef, List[str]]:
        readers: Dict[TensorRef, List[str]] = {}
        for node in self.hoisted_nodes + self.body_nodes:
            for ref in node.inputs:
                readers.setdefault(ref, []).append(node.name)
        return readers

    def _memory(self, ref: TensorRef):
        return self.graph.tensor(ref).memory

    def _buffer(self, ref: TensorRef) -> str:
        """What hazards are tracked by: the container of a VECCALC tensor, each queue tensor for itself."""
        memory = self._memory(ref)
        return "veccalc%d" % memory.container if memory.position is Position.VECCALC else ref.node

    def _buffers_of(self, nodes) -> Set[str]:
        buffers = set()
        for node in nodes:
            refs = [r for r in node.inputs + (TensorRef(node.name),) if self._in_calc(r)]
            buffers.update(self._buffer(r) for r in refs)
        if self.impl.tmp_bytes:
            buffers.add(TMP)
        return buffers

    def _in_calc(self, ref: TensorRef) -> bool:
        memory = self._memory(ref)
        return memory is not None and memory.position is Position.VECCALC

    # ---- order

    def _barrier(self) -> None:
        self.lines.append(BARRIER)
        self.written.clear()
        self.read.clear()

    def _vector_instruction(self, reads: Set[str], writes: Set[str]) -> None:
        waits = bool((reads | writes) & self.written or writes & self.read)
        if waits:
            self._barrier()
        if self.first_waits is None:
            self.first_waits = waits
        self.read |= reads
        self.written |= writes

    def _dequeue(self, ref: TensorRef) -> None:
        name, queue = self.names[ref.node], self.impl.container(ref).name
        self.lines.append("%s = %s.DeQue<%s>();" % (name, queue, self.graph.tensor(ref).dtype.device))
        self.waiting.discard(ref)

    def _free_inputs(self, node: AscNode) -> None:
        for ref in dict.fromkeys(node.inputs):
            memory = self._memory(ref)
            if memory is None or memory.position is not Position.VECIN or self.readers[ref][-1] != node.name:
                continue
            line = "%s.FreeTensor(%s);" % (self.impl.container(ref).name, self.names[ref.node])
            made, read = (any(n.name == name for n in self.hoisted_nodes) for name in (ref.node, node.name))
            # A tile must not free what the next one reads.
            (self.after if made and not read else self.lines).append(line)

    # ---- nodes

    def _node(self, node: AscNode) -> None:
        self.lines.append(self._node_comment(node))
        for ref in dict.fromkeys(node.inputs):
            if ref in self.waiting:
                self._dequeue(ref)
        if node.type == "Load" or (node.type == "Gather" and self.impl.plan(node).kind == "rows"):
            self._load(node)
        elif node.type == "Store":
            self._store(node)
        else:
            self._compute(node)
        self._free_inputs(node)

    def _node_comment(self, node: AscNode) -> str:
        inputs = [self._describe(r) for r in node.inputs]
        text = "%s = %s(%s)" % (self.names[node.name], node.type, ", ".join(inputs))
        if node.type == "Store":
            names = []
            outputs = [str(o.attr("index")) for o in self._sinks(node) if o.type == "Output"]
            names += ["output %s" % ", ".join(outputs)] if outputs else []
            names += [self.workspace(o) for o in self._sinks(node) if o.type == "Workspace"]
            text = "%s = %s" % (", ".join(names), inputs[0])
        return comment(text + ("    " + ", ".join(node.origin) if node.origin else ""))

    def _sinks(self, store: AscNode) -> List[AscNode]:
        """The Output and Workspace nodes that a Store writes to."""
        return [o for o in self.graph.of_type("Output", "Workspace") if TensorRef(store.name) in o.inputs]

    def _gm(self, node: AscNode) -> str:
        """The GlobalTensor of a Data, Output or Workspace node."""
        if node.type == "Workspace":
            return "gm_" + self.workspace(node)
        return "gm_%s%d" % ("in" if node.type == "Data" else "out", node.attr("index"))

    def _describe(self, ref: TensorRef) -> str:
        node = self.graph.node(ref.node)
        if node.type == "Workspace":
            return self.workspace(node)
        if node.type == "Data":
            return "input %d" % node.attr("index")
        return repr(node.attr("value")) if node.type == "Scalar" else self.names[ref.node]

    def _load(self, node: AscNode) -> None:
        ref, data = TensorRef(node.name), self.graph.node(node.inputs[0].node)
        queue, name, dtype = self.impl.container(ref).name, self.names[node.name], node.y.dtype
        self.lines.append(
            "AscendC::LocalTensor<%s> %s = %s.AllocTensor<%s>();" % (dtype.device, name, queue, dtype.device)
        )
        if node.type == "Gather":
            call = self._gather(node)
        else:
            call = transfers.load(name, self._gm(data), dtype, self.impl.plan(node), self.expressions)
        self._emit_transfer(call)
        self.lines.append("%s.EnQue(%s);" % (queue, name))
        self.waiting.add(ref)

    def _gather(self, node: AscNode) -> transfers.Call:
        data, index = (ref.node for ref in node.inputs)
        return gather(self.names[node.name], self._gm(self.graph.node(data)), self.names[index],
                      self.impl.plan(node), self.expressions)

    def _emit_transfer(self, call: transfers.Call) -> None:
        self.headers.update(call.headers)
        self.lines.extend(call.lines)

    def _store(self, node: AscNode) -> None:
        ref = node.inputs[0]
        name, queue, dtype = self.names[ref.node], self.impl.container(ref).name, self.graph.tensor(ref).dtype
        if ref not in self.queued_out:
            self.queued_out.add(ref)
            self.lines.append("%s.EnQue(%s);" % (queue, name))
            self.lines.append("%s = %s.DeQue<%s>();" % (name, queue, dtype.device))
        for sink in self._sinks(node):
            self._emit_transfer(
                transfers.store(self._gm(sink), name, dtype, self.impl.plan(node), self.expressions))
        if self.readers[ref][-1] == node.name:
            self.lines.append("%s.FreeTensor(%s);" % (queue, name))

    def _result(self, node: AscNode) -> str:
        """The node's tensor, made ready to be written."""
        ref = TensorRef(node.name)
        name, dtype = self.names[node.name], node.y.dtype
        container = self.impl.container(ref)
        if container.position is Position.VECOUT:
            self.lines.append(
                "AscendC::LocalTensor<%s> %s = %s.AllocTensor<%s>();"
                % (dtype.device, name, container.name, dtype.device)
            )
        else:
            self.locals[name] = Local(name, dtype.device, container.name)
        return name

    def _operands(self, node: AscNode, uses_tmp: bool) -> Tuple[Set[str], Set[str]]:
        reads = {
            self._buffer(r)
            for r in node.inputs
            if self._memory(r) is not None and self._memory(r).position is not Position.GM
        }
        writes = {self._buffer(TensorRef(node.name))} | ({TMP} if uses_tmp else set())
        return reads, writes

    def _compute(self, node: AscNode) -> None:
        if node.type in ("Broadcast", "RemovePad", "Transpose", "Copy"):
            scalar = self._scalar_text(node.inputs[0])
            source = scalar if scalar is not None else self.names[node.inputs[0].node]
            call = transfers.move(
                node,
                node.y.dtype,
                self.names[node.name],
                source,
                scalar is not None,
                self.impl.plan(node),
                self.expressions,
            )
            self.headers.update(call.headers)
            lines = list(call.lines)
        elif node.type == "Gather":
            call = self._gather(node)
            self.headers.update(call.headers)
            lines = list(call.lines)
        elif is_reduction(node):
            row, text = call_form(node, self.impl, self.impl.plan(node).kind)
            call = transfers.reduce(text, row.header, self.names[node.name], self.names[node.inputs[0].node],
                                    self.impl.plan(node), self.expressions)
            self.headers.update(call.headers)
            lines = list(call.lines)
        else:
            row, text = call_form(node, self.impl)
            if "autofuse::" in text:
                self.headers.add(row.header)
            lines = [self._fill(node, text)]
        name = self._result(node)
        assert name == self.names[node.name]
        self._vector_instruction(
            *self._operands(node, any(re.search(r"\b%s\b" % TMP, line) for line in lines))
        )
        self.lines.extend(lines)

    def _scalar_text(self, ref: TensorRef) -> Optional[str]:
        node = self.graph.node(ref.node)
        if node.type != "Scalar":
            return None
        if isinstance(node.attr("value"), SizeExpr):
            (field,) = [v.field for v in self.values if v.is_of(node)]
            text = "t." + field
            return text if node.y.dtype in (FLOAT32, INT32) else "static_cast<%s>(%s)" % (node.y.dtype.device,
                                                                                          text)
        self.constants |= needs_from_bits(node.attr("value"), node.y.dtype)
        return literal(node.attr("value"), node.y.dtype)

    def _fill(self, node: AscNode, text: str) -> str:
        values: Dict[str, str] = {
            "dst": self.names[node.name],
            "T": compute_dtype(node, self.impl).device,
            "tmp": TMP,
        }
        for i, ref in enumerate(node.inputs):
            scalar = self._scalar_text(ref)
            if scalar is None:
                values[str(i)] = self.names[ref.node]
            else:
                values["c%d" % i] = scalar
        for key, value in node.attrs:
            values["attr_" + key] = self._attribute(value)
        if "{n}" in text:
            values["n"] = self.expressions.count(self.impl.plan(node).count)

        def replacement(match):
            try:
                return values[match.group(1)]
            except KeyError:
                raise CodegenRefusal(
                    "the call text of %s asks for {%s}, which the node does not have"
                    % (node.type, match.group(1))
                )

        return re.sub(r"\{(\w+)\}", replacement, text)

    def _attribute(self, value) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            self.constants |= needs_from_bits(value, FLOAT32)
            return literal(value, FLOAT32)
        return str(value)
