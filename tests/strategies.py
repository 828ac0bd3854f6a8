"""Hypothesis strategies for values that several rooms test with: sizes, HintGraphs, fused graphs and their inputs.

sizes
    A size is drawn as a tree together with its naive meaning, so that what the symbolic room makes of it can be
    compared with what was asked for: `SizeTree.build()` and `SizeTree.value(values)`.
"""
from typing import Mapping, NamedTuple, Tuple, Union

from hypothesis import strategies as st

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


_BUILD = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": sz.maximum,
          "min": sz.minimum, "floor_div": sz.floor_div, "ceil_div": sz.ceil_div, "broadcast": sz.broadcast_size,
          "stride": sz.stride_or_zero}
_VALUE = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": max, "min": min,
          "floor_div": lambda a, b: a // b if b else 0, "ceil_div": lambda a, b: (a + b - 1) // b if b else 0,
          "broadcast": _broadcast, "stride": lambda dim, stride: 0 if dim == 1 else stride}

_LEAVES = [SizeTree("symbol", (n,)) for n in SYMBOLS] + [SizeTree("int", (v,)) for v in (0, 1, 2, 3, 4, 16, 128)]


def size_trees(functions: Tuple[str, ...] = tuple(_BUILD), max_leaves: int = 8):
    """SizeTrees over SYMBOLS and small integers, from a list of numbers read as a stack machine's program (drawing
    the tree node by node costs ten times as much)."""
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
