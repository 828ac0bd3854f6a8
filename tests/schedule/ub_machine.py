"""Runs an ImplGraph on numpy as a generated kernel would, to test schedules without code generation.

It keeps UB as bytes: every container has buf_num buffers of exactly the planned size, full of garbage before
use; queues hand buffers out and take them back; counts, strides and offsets are those of the plans. On exit:
the outputs, and how often each element was written. Whatever breaks the contract of schedule/impl_graph.py is
an AssertionError.
"""
import numpy as np

from tf_autofuse.ir.asc_graph import Position, TensorRef
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.axes import is_reduction
from tf_autofuse.schedule.impl_graph import GatherPlan, ReducePlan, TransposePlan
from tf_autofuse.symbolic.size import evaluate

_GARBAGE = 0xA5
_FOREVER = 1 << 30


class _Queue:
    def __init__(self, container, bytes_):
        self.buffers = [np.full(bytes_, _GARBAGE, np.uint8) for _ in range(container.buf_num)]
        self.free = list(range(container.buf_num))
        self.name = container.name

    def alloc(self):
        assert self.free, "%s: AllocTensor with no free buffer" % self.name
        i = self.free.pop(0)
        self.buffers[i][:] = _GARBAGE
        return i

    def release(self, i):
        assert i not in self.free
        self.free.append(i)


class UbMachine:
    """One launch. values: symbol -> int; plan: a TilingPlan-like (tile, tiles_per_block, block_dim,
    containers)."""

    def __init__(self, impl, values, tile, tiles_per_block, block_dim, container_bytes, inputs, outputs):
        self.impl, self.graph = impl, impl.graph
        self.values = dict(values, **{impl.tile_symbol: tile, impl.block_symbol: tiles_per_block})
        self.block_dim = block_dim
        self.container_bytes = container_bytes
        self.inputs, self.outputs = inputs, outputs
        self.written = [np.zeros(o.size, np.int64) for o in outputs]
        order = [n.name for n in impl.graph.nodes]
        self.last_reader = {}
        for n in impl.graph.nodes:
            for r in n.inputs:
                self.last_reader[r.node] = order.index(n.name)
        self.order = {name: i for i, name in enumerate(order)}

    def run(self):
        impl = self.impl
        sizes = [evaluate(self.graph.axis(a).size, self.values) for a in impl.outer_axes]
        total = int(np.prod(sizes, dtype=np.int64))
        per_block = self.values[impl.block_symbol]
        assert (self.block_dim - 1) * per_block < total <= self.block_dim * per_block
        cut = evaluate(self.graph.axis(impl.cut_axis).size, self.values)
        for block in range(self.block_dim):
            self._start_block()
            env = dict(self.values)
            for n in impl.hoisted:
                self._execute(n, env)
            for i in range(block * per_block, min((block + 1) * per_block, total)):
                rest, env = i, dict(self.values)
                for axis, size in reversed(list(zip(impl.outer_axes, sizes))):
                    env[impl.index_symbol(axis)] = rest % size
                    rest //= size
                tile = env[impl.tile_symbol]
                env[impl.tile_actual] = min(tile, cut - env[impl.index_symbol(impl.tile_out)] * tile)
                if impl.second:
                    size = evaluate(self.graph.axis(impl.second.axis).size, self.values)
                    at = env[impl.index_symbol(impl.second.tile_out)] * impl.second.tile
                    env[impl.second.actual] = min(impl.second.tile, size - at)
                for n in impl.body:
                    self._execute(n, env)
                self._end_of_tile()

    def _start_block(self):
        self.queues = {}
        for c in self.impl.containers:
            self.queues[c.position, c.id] = _Queue(c, self.container_bytes[c.field])
        self.held = {}  # tensor -> buffer number
        self.live = {}  # VECCALC container -> tensor whose value it holds

    def _end_of_tile(self):
        in_loop = [name for name in self.held if self.graph.node(name).sched.loop_axis != -1
                   and self.graph.node(name).y.memory.position is not Position.VECCALC]
        assert not in_loop, "not freed at the end of a tile: %s" % in_loop

    def _birth(self, node):
        memory = node.y.memory
        queue = self.queues[memory.position, memory.container]
        if memory.position is Position.VECCALC:
            self.live[memory.container] = node.name
            return queue.buffers[0].view(_storage(node.y.dtype))
        self.held[node.name] = queue.alloc()
        return queue.buffers[self.held[node.name]].view(_storage(node.y.dtype))

    def _tensor(self, ref):
        node = self.graph.node(ref.node)
        memory = node.y.memory
        queue = self.queues[memory.position, memory.container]
        if memory.position is Position.VECCALC:
            assert self.live[memory.container] == node.name, "%s was overwritten by %s" % (
                node.name, self.live[memory.container])
            return queue.buffers[0].view(_storage(node.y.dtype))
        assert node.name in self.held, "%s is read after FreeTensor" % node.name
        return queue.buffers[self.held[node.name]].view(_storage(node.y.dtype))

    def _release_dead(self, node):
        for ref in set(node.inputs):
            made = self.graph.node(ref.node)
            if made.name not in self.held or self.last_reader[made.name] != self.order[node.name]:
                continue
            if made.sched.loop_axis == -1 != node.sched.loop_axis:
                continue  # freed after the loop
            self.queues[made.y.memory.position, made.y.memory.container].release(self.held.pop(made.name))

    def _execute(self, node, env):
        def size(x):
            return evaluate(x, env)

        plan = self.impl.plan(node)
        if node.type == "Load":
            self._load(node, plan, size)
        elif node.type == "Store":
            self._store(node, plan, size)
        elif node.type == "Broadcast":
            self._broadcast(node, plan, size)
        elif isinstance(plan, ReducePlan):
            self._reduce(node, plan, size)
        elif isinstance(plan, TransposePlan):
            self._transpose(node, plan, size)
        elif isinstance(plan, GatherPlan):
            self._gather(node, plan, size)
        elif node.type == "RemovePad":
            source = self._tensor(node.inputs[0])
            rows, row, padded = size(plan.rows), size(plan.row), size(plan.padded)
            assert padded * node.y.dtype.bytes == -(-row * node.y.dtype.bytes // 32) * 32
            parts = [source[r * padded:r * padded + row] for r in range(rows)]
            values = np.concatenate(parts or [source[:0]])
            self._birth(node)[:values.size] = values
        else:
            self._compute(node, size(plan.count))
        self._release_dead(node)

    def _indices(self, plan, size):
        """(GM offsets, UB offsets) of all elements of a copy."""
        gm, ub = np.array([size(plan.gm_offset)]), np.array([0])
        for d in plan.dims:
            steps = np.arange(size(d.size))
            gm = (gm[:, None] + steps * size(d.gm_stride)).ravel()
            ub = (ub[:, None] + steps * size(d.ub_stride)).ravel()
        assert gm.size == size(plan.elements)
        return gm, ub

    def _check_copy(self, node, plan, size):
        item = node.y.dtype.bytes
        if plan.kind == "rows":
            rows, row = plan.dims
            assert size(rows.size) <= 4095
            assert size(rows.gm_stride) >= size(row.size)
            assert (size(rows.gm_stride) - size(row.size)) * item < 2 ** 32
        for d in plan.dims[:-1]:
            assert size(d.ub_stride) * item % 32 == 0 or size(d.size) <= 1

    def _load(self, node, plan, size):
        self._check_copy(node, plan, size)
        gm, ub = self._indices(plan, size)
        data = self.inputs[self.graph.node(node.inputs[0].node).attr("index")]
        target = self._birth(node)
        assert not gm.size or (gm.min() >= 0 and gm.max() < data.size), "%s reads outside of GM" % node.name
        target[ub] = data[gm]

    def _store(self, node, plan, size):
        self._check_copy(node, plan, size)
        gm, ub = self._indices(plan, size)
        source = self._tensor(node.inputs[0])
        for o in self.graph.of_type("Output"):
            if TensorRef(node.name) in o.inputs:
                index = o.attr("index")
                self.outputs[index][gm] = source[ub]
                np.add.at(self.written[index], gm, 1)

    def _offsets(self, outer, size):
        """(source, destination) offsets of every round of a plan's outer loops, which are at 32 B blocks."""
        src, dst = np.array([0]), np.array([0])
        for d in outer:
            steps = np.arange(size(d.size))
            src = (src[:, None] + steps * size(d.src_stride)).ravel()
            dst = (dst[:, None] + steps * size(d.dst_stride)).ravel()
        return src, dst

    def _reduce(self, node, plan, size):
        rows, cols, stride = map(size, (plan.rows, plan.cols, plan.stride))
        item = node.y.dtype.bytes
        assert rows <= 1 or stride * item % 32 == 0
        assert all(size(d.dst_stride) * item % 32 == 0 or size(d.size) <= 1 for d in plan.outer)
        source = self._tensor(node.inputs[0]).copy()
        attributes = dict(node.attrs, axes=(1 if plan.kind == "last" else 0,))
        target = self._birth(node)
        for src, dst in zip(*self._offsets(plan.outer, size)):
            block = np.stack([source[src + r * stride:src + r * stride + cols] for r in range(rows)])
            result = ASC_OPS[node.type].evaluate([block], attributes, node.y.dtype).ravel()
            target[dst:dst + result.size] = result

    def _transpose(self, node, plan, size):
        rows, cols, src_stride, dst_stride = map(size, (plan.rows, plan.cols, plan.src_stride,
                                                        plan.dst_stride))
        item = node.y.dtype.bytes
        assert item in (2, 4) and src_stride * item % 32 == 0 and dst_stride * item % 32 == 0
        source = self._tensor(node.inputs[0]).copy()
        target = self._birth(node)
        for src, dst in zip(*self._offsets(plan.outer, size)):
            for j in range(cols):
                target[dst + j * dst_stride:dst + j * dst_stride + rows] = [
                    source[src + i * src_stride + j] for i in range(rows)]

    def _gather(self, node, plan, size):
        count, cols, ub_stride = map(size, (plan.count, plan.cols, plan.ub_stride))
        data = self.inputs[self.graph.node(node.inputs[0].node).attr("index")]
        index = self._tensor(node.inputs[1]).copy()
        assert (node.y.memory.position is Position.VECIN) == (plan.kind == "rows")
        assert plan.kind == "elements" or count <= 1 or ub_stride * node.y.dtype.bytes % 32 == 0
        target = self._birth(node)
        places = [(size(plan.gm_offset), 0, 0)]
        for d in plan.outer:
            places = [(g + k * size(d.gm_stride), t + k * size(d.dst_stride), i + k * size(d.index_stride))
                      for g, t, i in places for k in range(size(d.size))]
        for gm, at, i in places:
            for k in range(count):
                assert 0 <= index[i + k] < size(plan.limit)
                begin = gm + int(index[i + k]) * size(plan.index_stride)
                row = data[begin:begin + cols]
                assert row.size == cols, "%s reads outside of GM" % node.name
                step = ub_stride if plan.kind == "rows" else 1
                target[at + k * step:at + k * step + cols] = row

    def _broadcast(self, node, plan, size):
        rows, extent, inner, src_row = map(size, (plan.rows, plan.extent, plan.inner, plan.src_row))
        made = self.graph.node(node.inputs[0].node)
        blocks = []
        src, dst = self._offsets(plan.outer, size)
        assert all(size(d.dst_stride) * node.y.dtype.bytes % 32 == 0 for d in plan.outer)
        if made.type == "Scalar":
            blocks = [np.full(extent, made.attr("value"), _storage(node.y.dtype))]
        else:
            source = self._tensor(node.inputs[0])
            for s in src:
                block = np.stack([source[s + r * src_row:s + r * src_row + inner] for r in range(rows)])
                blocks.append(np.repeat(block[:, None, :], extent, axis=1).ravel())
        if plan.kind in ("rows", "blocks"):
            assert inner * node.y.dtype.bytes % 32 == 0
        if plan.kind == "columns":
            assert extent * node.y.dtype.bytes % 32 == 0
        assert plan.kind not in ("fill", "columns") or inner == 1
        target = self._birth(node)
        for d, block in zip(dst, blocks):
            target[d:d + block.size] = block

    def _compute(self, node, count):
        values = []
        for ref in node.inputs:
            made = self.graph.node(ref.node)
            values.append(_storage(made.y.dtype)(made.attr("value")) if made.type == "Scalar"
                          else self._tensor(ref)[:count].copy())
        if node.type == "Copy":
            result = values[0]
        else:
            attributes = dict(node.attrs, source=self.graph.tensor(node.inputs[0]).dtype)
            with np.errstate(all="ignore"):
                result = ASC_OPS[node.type].evaluate(values, attributes, node.y.dtype)
        target = self._birth(node)
        assert count <= target.size, "%s: %d elements in a buffer of %d" % (node.name, count, target.size)
        target[:count] = result


def _storage(dtype):
    return np.uint8 if dtype.kind == "b" else dtype.numpy


def reference(graph, values, inputs, output_sizes):
    """The HintGraph's outputs on numpy, straight from its definition."""
    shape = [evaluate(graph.axis(a).size, values) for a in graph.loop_axes]
    tensors, outputs = {}, {}
    for n in graph.nodes:
        if n.type == "Data":
            tensors[n.name] = inputs[n.attr("index")]
        elif n.type == "Scalar":
            tensors[n.name] = np.full([1] * len(shape), n.attr("value"), _storage(n.y.dtype))
        elif n.type in ("Load", "Gather"):
            at = np.full([1] * len(shape), evaluate(n.attr("offset", 0), values))
            for i, (repeat, stride) in enumerate(zip(n.y.repeats, n.y.strides)):
                steps = np.arange(evaluate(repeat, values)) * evaluate(stride, values)
                at = at + steps.reshape([-1 if j == i else 1 for j in range(len(shape))])
            if n.type == "Gather":
                at = at + tensors[n.inputs[1].node] * evaluate(n.attr("index_stride"), values)
            tensors[n.name] = tensors[n.inputs[0].node][at]
        elif n.type == "Broadcast":
            repeats = [evaluate(r, values) for r in n.y.repeats]
            tensors[n.name] = np.broadcast_to(tensors[n.inputs[0].node], repeats)
        elif n.type == "Store":
            tensors[n.name] = np.broadcast_to(tensors[n.inputs[0].node],
                                              [evaluate(r, values) for r in n.y.repeats])
        elif n.type == "Output":
            outputs[n.attr("index")] = tensors[n.inputs[0].node].ravel()
        else:
            attributes = dict(n.attrs, source=graph.tensor(n.inputs[0]).dtype)
            if is_reduction(n):
                attributes["axes"] = tuple(n.y.axis.index(a) for a in n.attr("axes"))
            with np.errstate(all="ignore"):
                result = ASC_OPS[n.type].evaluate([tensors[r.node] for r in n.inputs], attributes, n.y.dtype)
            tensors[n.name] = result.astype(_storage(n.y.dtype))
    return [outputs[i] for i in range(output_sizes)]


def containers_at(impl, values, tile):
    """field -> bytes of one buffer, for a tile."""
    env = dict(values, **{impl.tile_symbol: tile})
    return {c.field: max(evaluate(b, env) for b in c.tensor_bytes) for c in impl.containers}


def tensor_name(ref: TensorRef) -> str:
    return ref.node
