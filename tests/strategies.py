"""Hypothesis strategies for values that several rooms test with: sizes, HintGraphs, fused graphs and their
inputs.

sizes
    A size is drawn as a tree together with its naive meaning, so that what the symbolic room makes of it can
    be compared with what was asked for: `SizeTree.build()` and `SizeTree.value(values)`.
graphs
    `fused_graphs()` draws verified FusedGraphs of one HintGraph: elementwise ops, casts, comparisons and
    selects over tensors that broadcast against each other, with static sizes, symbols, and dims of which it
    shows only at run time whether they broadcast. `dims_for` and `arrays_for` make inputs for them.
All are drawn as a list of numbers that a builder reads its choices from: quick to draw, and shrinking the
list shrinks what is built.
"""
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np
from hypothesis import strategies as st

from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO, TensorRef
from tf_autofuse.ir.builder import HintBuilder, dense_strides
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, INT32
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar, bind
from tf_autofuse.symbolic import size as sz

SYMBOLS = ("s0", "s1", "s2", "batch")


class Incompatible(Exception):
    """The drawn values are dims that do not broadcast against each other: the tree has no meaning there."""


class SizeTree(NamedTuple):
    """op: 'int', 'symbol' or a function's name; args: the number, the name, or the operands."""

    op: str
    args: Tuple[Union[int, str, "SizeTree"], ...]

    def build(self):
        """The size, through the public functions of symbolic.size."""
        if self.op == "int":
            return self.args[0]
        if self.op == "symbol":
            return sz.symbol(self.args[0])
        return _BUILD[self.op](*[a.build() for a in self.args])

    def value(self, values: Mapping[str, int]) -> int:
        """Its value, straight from the definition. Raises Incompatible."""
        if self.op == "int":
            return self.args[0]
        if self.op == "symbol":
            return values[self.args[0]]
        return _VALUE[self.op](*[a.value(values) for a in self.args])


def _broadcast(a, b):
    if a != b and 1 not in (a, b):
        raise Incompatible()
    return b if a == 1 else a


_BUILD = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": sz.maximum,
    "min": sz.minimum,
    "floor_div": sz.floor_div,
    "ceil_div": sz.ceil_div,
    "broadcast": sz.broadcast_size,
    "stride": sz.stride_or_zero,
}
_VALUE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "floor_div": lambda a, b: a // b if b else 0,
    "ceil_div": lambda a, b: (a + b - 1) // b if b else 0,
    "broadcast": _broadcast,
    "stride": lambda dim, stride: 0 if dim == 1 else stride,
}

_LEAVES = [SizeTree("symbol", (n,)) for n in SYMBOLS] + [
    SizeTree("int", (v,)) for v in (0, 1, 2, 3, 4, 16, 128)
]


def size_trees(functions: Tuple[str, ...] = tuple(_BUILD), max_leaves: int = 8):
    """SizeTrees over SYMBOLS and small integers, from a list of numbers read as a stack machine's program
    (drawing the tree node by node costs ten times as much)."""

    def run(program):
        stack = []
        for code in program:
            if code < len(_LEAVES) or len(stack) < 2:
                stack.append(_LEAVES[code % len(_LEAVES)])
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(SizeTree(functions[code % len(functions)], (left, right)))
        while len(stack) > 1:
            right, left = stack.pop(), stack.pop()
            stack.append(SizeTree(functions[len(stack) % len(functions)], (left, right)))
        return stack[0]

    return st.lists(st.integers(0, 2 * len(_LEAVES) - 1), min_size=1, max_size=2 * max_leaves - 1).map(run)


def symbol_values(largest: int = 40):
    """Values of SYMBOLS, often 0, 1 or equal."""
    one = st.one_of(st.sampled_from((0, 1, 2, 5)), st.integers(0, largest))
    return st.fixed_dictionaries({name: one for name in SYMBOLS})


class _Choices:
    """Reads decisions off a list of numbers; 0, the simplest choice, when it is used up."""

    def __init__(self, numbers: Sequence[int]):
        self.numbers, self.at = list(numbers), 0

    def pick(self, options):
        number = self.numbers[self.at] if self.at < len(self.numbers) else 0
        self.at += 1
        return options[number % len(options)]

    @property
    def left(self) -> int:
        return len(self.numbers) - self.at


#: Types whose results are the same bits wherever they are computed, and that every target takes, by dtype.
UNARY: Dict[DType, Tuple[str, ...]] = {
    FLOAT32: ("Abs", "Neg", "Relu", "Floor", "Rint"),
    INT32: ("Neg", "Relu"),
}
BINARY: Dict[DType, Tuple[str, ...]] = {
    FLOAT32: ("Add", "Mul", "Sub", "Maximum", "Minimum"),
    INT32: ("Add", "Mul", "Sub", "Maximum", "Minimum"),
}
COMPARE = ("Gt", "Le", "Eq")
CONSTANTS = {FLOAT32: (0.5, -1.0, 0.0, 2.0**100, float("inf")), INT32: (1, -3, 0, 2**31 - 1)}


class _GraphProgram:
    """Builds one fused graph from choices. Values are (TensorRef, dims mask) by dtype."""

    def __init__(self, numbers, symbolic: bool, input_dtypes: Sequence[DType]):
        self.c = _Choices(numbers)
        self.sizes: List[SizeVar] = []
        self.guards: List[Guard] = []
        self.read = set()
        rank = self.c.pick((2, 1, 3))
        kinds = [
            self.c.pick(("symbol", "static", "broadcast") if symbolic else ("static",)) for _ in range(rank)
        ]
        count = self.c.pick((2, 1, 3))
        count = max(count, 2) if "broadcast" in kinds else count
        self.dtypes = [self.c.pick(input_dtypes) for _ in range(count)]
        # dims[i][k]: the size of input i along axis k. Input 0 extends along every axis.
        dims: List[List[sz.Size]] = [[1] * rank for _ in range(count)]
        extents: List[sz.Size] = []
        for k, kind in enumerate(kinds):
            if kind == "static":
                extents.append(self.c.pick((3, 1, 2, 16, 17)))
            else:
                extents.append(self.new_symbol(InputDim(0, k)))
            for i in range(count):
                dims[i][k] = extents[k] if i == 0 or self.c.pick((True, False)) else 1
            if kind == "broadcast":
                other = self.new_symbol(InputDim(1, k))
                dims[1][k] = other
                both = self.new_symbol(sz.broadcast_size(extents[k], other))
                self.guards.append(Guard("broadcast", extents[k], other, "the graph"))
                for i in range(2, count):
                    dims[i][k] = 1
                extents[k] = both
        self.builder = HintBuilder(
            "random", [("z%d" % k, e) for k, e in enumerate(extents)], tuple(self.sizes)
        )
        self.extents, self.dims = extents, dims
        self.values: List[Tuple[TensorRef, Tuple[int, ...]]] = [self.load(i) for i in range(count)]

    def new_symbol(self, source):
        name = "s%d" % len(self.sizes)
        self.sizes.append(SizeVar(name, source))
        return sz.symbol(name)

    def load(self, i: int):
        dense = dense_strides(self.dims[i])
        mask = tuple(0 if sz.known_equal(d, 1) else 1 for d in self.dims[i])
        strides = [
            s if sz.known_equal(d, e) else sz.stride_or_zero(d, s)
            for d, e, s in zip(self.dims[i], self.extents, dense)
        ]
        ref = self.builder.load(self.builder.data(i, self.dtypes[i]), mask, strides)
        if self.dtypes[i] in (FLOAT16, BFLOAT16):
            ref = self.builder.op("Cast", ref, dtype=FLOAT32)
        elif self.dtypes[i] is BOOL:
            ref = self.builder.op(
                "Where", ref, self.builder.scalar(1.0, FLOAT32), self.builder.scalar(-2.0, FLOAT32)
            )
        return ref, mask

    def op(self) -> None:
        b, (ref, mask) = self.builder, self.c.pick(self.values[::-1])
        dtype = b.tensor(ref).dtype
        kind = self.c.pick(("unary", "binary", "scalar", "select", "cast"))
        if kind == "unary" or (kind == "cast" and dtype is not INT32):
            self.add(b.op(self.c.pick(UNARY[dtype]), ref), mask, ref)
        elif kind == "cast":
            self.add(b.op("Cast", ref, dtype=FLOAT32), mask, ref)
        elif kind == "scalar":
            constant = b.scalar(self.c.pick(CONSTANTS[dtype]), dtype)
            pair = (ref, constant) if self.c.pick((True, False)) else (constant, ref)
            self.add(b.op(self.c.pick(BINARY[dtype]), *pair), mask, ref)
        else:
            other, other_mask = self.c.pick([v for v in self.values if b.tensor(v[0]).dtype is dtype])
            union = tuple(max(pair) for pair in zip(mask, other_mask))
            wide, other_wide = b.broadcast_to(ref, union), b.broadcast_to(other, union)
            self.read.update((ref, other))
            if kind == "binary":
                self.add(b.op(self.c.pick(BINARY[dtype]), wide, other_wide), union, ref)
            else:
                chosen = b.compare(self.c.pick(COMPARE), wide, other_wide)
                self.add(b.op("Where", chosen, wide, other_wide), union, ref)

    def add(self, ref, mask, read) -> None:
        self.read.add(read)
        self.values.append((ref, mask))

    def finish(self) -> FusedGraph:
        while self.c.left > 0 and len(self.values) < 14:
            self.op()
        outputs = []
        for ref, _ in self.values:
            if ref not in self.read or (len(outputs) == 0 and ref == self.values[-1][0]):
                dtype = self.builder.tensor(ref).dtype
                if dtype is FLOAT32 and FLOAT16 in self.dtypes and len(outputs) == 0:
                    ref, dtype = self.builder.op("Cast", ref, dtype=FLOAT16), FLOAT16
                self.builder.store(ref, len(outputs))
                outputs.append(KernelIO(dtype, tuple(self.extents)))
        return FusedGraph(
            "random",
            "pointwise",
            tuple(KernelIO(d, tuple(x)) for d, x in zip(self.dtypes, self.dims)),
            tuple(outputs),
            tuple(self.sizes),
            tuple(self.guards),
            (self.builder.graph(),),
        )


def fused_graphs(
    symbolic: bool = True, input_dtypes: Sequence[DType] = (FLOAT32, FLOAT16, INT32), max_size: int = 48
):
    """FusedGraphs of one HintGraph; with symbolic=False all sizes are static. max_size bounds the list of
    choices, and with it the number of ops (about a quarter of it, at most 14 values)."""
    return st.lists(st.integers(0, 119), min_size=6, max_size=max_size).map(
        lambda numbers: _GraphProgram(numbers, symbolic, input_dtypes).finish()
    )


def dims_for(fused: FusedGraph, numbers: Sequence[int], extents: Sequence[int] = (3, 1, 0, 2, 17, 33)):
    """Dims of every input that satisfy the guards. The symbols' values are read off `numbers`."""
    choices = _Choices(numbers)
    values = {v.name: choices.pick(extents) for v in fused.sizes if isinstance(v.source, InputDim)}
    for guard in fused.guards:
        left, right = sz.to_text(guard.left), sz.to_text(guard.right)
        if not guard.holds(values):
            values[choices.pick((left, right))] = 1
    for v in fused.sizes:
        if not isinstance(v.source, InputDim):
            values[v.name] = sz.evaluate(v.source, values)
    dims = tuple(tuple(sz.evaluate(d, values) for d in io.dims) for io in fused.inputs)
    assert dict(bind(fused.sizes, dims)) == values
    return dims


_SPECIAL = (0.0, -0.0, 1.0, -1.5, 2.5, 1e-3, 65504.0, -3e4, float("inf"), float("-inf"), float("nan"))


def arrays_for(fused: FusedGraph, dims, seed: int) -> List[np.ndarray]:
    """Random arrays of these dims with special values among them, in storage types."""
    rng = np.random.RandomState(seed)
    arrays = []
    for io, shape in zip(fused.inputs, dims):
        if io.dtype is BOOL:
            arrays.append(rng.rand(*shape) < 0.5)
        elif io.dtype.is_integer:
            info = np.iinfo(io.dtype.numpy)
            values = rng.randint(-50, 50, shape) if io.dtype.kind == "i" else rng.randint(0, 100, shape)
            edges = rng.choice(np.array([info.min, info.max, 0, 1], io.dtype.numpy), shape)
            arrays.append(np.where(rng.rand(*shape) < 0.1, edges, values.astype(io.dtype.numpy)))
        else:
            values = np.where(rng.rand(*shape) < 0.1, rng.choice(_SPECIAL, shape), rng.randn(*shape) * 10)
            if io.dtype is BFLOAT16:
                arrays.append(
                    (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(shape)
                )
            else:
                arrays.append(values.astype(io.dtype.numpy).reshape(shape))
    return arrays
