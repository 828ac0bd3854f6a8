"""Random recipes of mixed families. The same seed gives the same recipe on every machine.

Steps keep values bounded and defined (no division by what may be zero, exp only of what is small), so that a
difference is a fault and not chaos. What jumps (floor, comparisons, casts to integers, indexes) reads exact
results only: an inexact one may differ from TF's in the last bit, and a jump would make that large.
"""

from typing import Callable, Dict, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from tests.fuzz.recipe import Recipe, Source, Step, apply, build

_DIMS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
_MAX_ELEMENTS = 6000


def _within(value: str, limit: int) -> str:
    return "tf.minimum(tf.maximum(%s, -%d.0), %d.0)" % (value, limit, limit)


#: (text of {a}, exact). Those of the second table jump.
_UNARY = (
    ("tf.abs({a})", True),
    ("tf.nn.relu({a})", True),
    ("tf.nn.relu6({a})", True),
    ("tf.square(%s)" % _within("{a}", 3), True),
    ("tf.tanh({a})", False),
    ("tf.sigmoid({a})", False),
    ("tf.exp(tf.minimum({a}, 2.0))", False),
    ("tf.math.log1p(tf.abs({a}))", False),
    ("tf.sqrt(tf.abs({a}) + 0.5)", False),
    # of an infinite value TensorFlow's gives NaN (docs/numerics.md)
    ("tf.math.rsqrt(tf.minimum(tf.abs({a}), 1e6) + 1.0)", False),
    ("tf.nn.softplus({a})", False),
    ("tf.math.erf({a})", False),
    ("{a} * 0.5", True),
    ("1.0 - {a}", True),
    ("tf.nn.leaky_relu({a}, 0.25)", True),
    ("tf.nn.elu({a})", False),
    ("tf.identity({a})", True),
)
_JUMPING = (
    "tf.floor({a})",
    "tf.math.ceil({a})",
    "tf.math.rint({a})",
    "tf.sign({a})",
    "tf.cast(tf.cast({a}, tf.float16), F)",
    "tf.cast(tf.cast(%s, tf.int32), F)" % _within("{a}", 9),
)
_BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "tf.maximum({a}, {b})",
    "tf.minimum({a}, {b})",
    "tf.math.squared_difference(%s, %s)" % (_within("{a}", 2), _within("{b}", 2)),
    "{a} * " + _within("{b}", 2),
    "{a} / (tf.abs({b}) + 1.0)",
)
_INT_UNARY = ("tf.abs({a})", "-{a}", "{a} * 3", "tf.square({a})", "{a} // 3", "{a} % 5", "tf.maximum({a}, 1)")
_INT_BINARY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "tf.maximum({a}, {b})", "tf.minimum({a}, {b})")


class _Maker:
    def __init__(self, seed: int):
        self.seed = seed
        self.random = np.random.RandomState(seed % (1 << 32))
        self.sources: List[Source] = []
        self.steps: List[Step] = []
        self.tensors: Dict[int, tf.Tensor] = {}
        self.exact: List[bool] = []

    # choosing

    def one(self, items: Sequence):
        return items[self.random.randint(len(items))]

    def chance(self, probability: float) -> bool:
        return self.random.rand() < probability

    def shape(self, n: int) -> List[int]:
        return self.tensors[n].shape.as_list()

    def pick(self, fits: Callable[[int], bool]) -> Optional[int]:
        """A result that fits, recent ones more often."""
        found = [n for n in sorted(self.tensors) if fits(n)]
        if not found:
            return None
        return self.one(found[-5:]) if self.chance(0.7) else self.one(found)

    def is_float(self, n: int) -> bool:
        return self.tensors[n].dtype == tf.float32

    def is_int(self, n: int) -> bool:
        return self.tensors[n].dtype == tf.int32

    # adding

    def source(self, shape, kind: str, unknown=False, limit=0) -> int:
        """Sources come before all steps."""
        assert not self.steps
        self.sources.append(Source(tuple(shape), kind, unknown, limit))
        n = len(self.sources) - 1
        dtype = tf.int32 if kind in ("int", "index") else tf.float32
        self.tensors[n] = tf.compat.v1.placeholder(dtype, shape)
        self.exact.append(True)
        return n

    def step(self, text: str, reads: Sequence[int], exact: bool = True) -> Optional[int]:
        tensor = apply(text, self.tensors)
        if tensor.shape.num_elements() > _MAX_ELEMENTS or tensor.shape.rank > 5:
            return None
        n = len(self.sources) + len(self.steps)
        self.steps.append(Step(text, exact and all(self.exact[r] for r in reads)))
        self.exact.append(self.steps[-1].exact)
        self.tensors[n] = tensor
        return n

    # families

    def unary(self) -> None:
        if self.chance(0.15):
            a = self.pick(self.is_int)
            if a is not None:
                self.step(self.one(_INT_UNARY).format(a="t%d" % a), [a])
            return
        jumps = self.chance(0.2)
        a = self.pick(lambda n: self.is_float(n) and (self.exact[n] or not jumps))
        if a is not None:
            text, exact = (self.one(_JUMPING), True) if jumps else self.one(_UNARY)
            self.step(text.format(a="t%d" % a), [a], exact)

    def partner(self, a: int) -> Optional[int]:
        def fits(n: int) -> bool:
            if self.tensors[n].dtype != self.tensors[a].dtype:
                return False
            try:
                np.broadcast(np.empty(self.shape(a)), np.empty(self.shape(n)))
                return True
            except ValueError:
                return False

        return self.pick(fits)

    def binary(self) -> None:
        a = self.pick(lambda n: self.is_float(n) or self.is_int(n))
        b = self.partner(a)
        text = self.one(_BINARY if self.is_float(a) else _INT_BINARY)
        self.step(text.format(a="t%d" % a, b="t%d" % b), [a, b])

    def select(self) -> None:
        a = self.pick(lambda n: self.is_float(n) and self.exact[n])
        if a is None:
            return
        b = self.partner(a)
        sign = self.one(("<", ">", ">=", "<="))
        if self.exact[b]:
            self.step("tf.where_v2(t%d %s t%d, t%d, t%d * 2.0)" % (a, sign, b, a, b), [a, b])

    def reduce(self) -> None:
        a = self.pick(lambda n: (self.is_float(n) or self.is_int(n)) and len(self.shape(n)) > 0)
        if a is None:
            return
        rank = len(self.shape(a))
        axes = sorted(self.random.permutation(rank)[: self.random.randint(1, rank + 1)].tolist())
        if self.chance(0.3):
            axes = [x - rank for x in axes]
        kind = self.one(
            ("sum", "mean", "max", "min", "max", "sum") if self.is_float(a) else ("sum", "max", "min")
        )
        exact = kind in ("max", "min") or self.is_int(a)
        text = "tf.reduce_%s(t%d, %r, %r)" % (kind, a, axes, self.chance(0.5))
        self.step(text, [a], exact)

    def arg_reduce(self) -> None:
        a = self.pick(
            lambda n: self.is_float(n) and self.exact[n] and len(self.shape(n)) > 0 and 0 not in self.shape(n)
        )
        if a is not None:
            axis = self.random.randint(len(self.shape(a)))
            self.step("tf.arg%s(t%d, %d, output_type=tf.int32)" % (self.one(("max", "min")), a, axis), [a])

    def norm(self) -> None:
        a = self.pick(lambda n: self.is_float(n) and len(self.shape(n)) > 1 and 0 not in self.shape(n))
        if a is None:
            return
        if self.chance(0.5):
            self.step("tf.nn.softmax(t%d)" % a, [a], False)
            return
        mean = self.step("tf.reduce_mean(t%d, -1, True)" % a, [a], False)
        if mean is None:
            return
        centred = self.step("t%d - t%d" % (a, mean), [a, mean], False)
        if centred is None:
            return
        spread = self.step("tf.reduce_mean(tf.square(t%d), -1, True)" % centred, [centred], False)
        self.step("t%d * tf.math.rsqrt(t%d + 0.25)" % (centred, spread), [centred, spread], False)

    def concat(self) -> None:
        a = self.pick(lambda n: self.is_float(n) and len(self.shape(n)) > 0)
        if a is None:
            return
        axis = self.random.randint(len(self.shape(a)))

        def fits(n: int) -> bool:
            s, t = self.shape(n), self.shape(a)
            return (
                self.is_float(n)
                and len(s) == len(t)
                and all(x == y for i, (x, y) in enumerate(zip(s, t)) if i != axis)
            )

        parts = [a] + [self.pick(fits) for _ in range(self.random.randint(1, 4))]
        if self.chance(0.3):
            parts = [n for n in parts if self.shape(n) == self.shape(a)]
            self.step("tf.stack([%s], %d)" % (", ".join("t%d" % n for n in parts), axis), parts)
        else:
            self.step("tf.concat([%s], %d)" % (", ".join("t%d" % n for n in parts), axis), parts)

    def slice(self) -> None:
        a = self.pick(lambda n: len(self.shape(n)) > 0)
        parts, kept = [], False
        for dim in self.shape(a):
            if dim < 2 or self.chance(0.5):
                parts.append(":")
                continue
            begin, kept = self.random.randint(0, dim), True
            if self.chance(0.2):
                parts.append("%d" % begin)
                continue
            end = self.random.randint(begin, dim + 1)
            parts.append(
                "%d:%d" % (begin, end) + (":%d" % self.random.randint(2, 4) if self.chance(0.25) else "")
            )
        if kept:
            self.step("t%d[%s]" % (a, ", ".join(parts)), [a])

    def split(self) -> None:
        a = self.pick(lambda n: any(d > 1 for d in self.shape(n)))
        if a is None:
            return
        axis = self.one([i for i, d in enumerate(self.shape(a)) if d > 1])
        dim = self.shape(a)[axis]
        if self.chance(0.4):
            cut = self.random.randint(1, dim)
            self.step(
                "tf.split(t%d, [%d, %d], %d)[%d]" % (a, cut, dim - cut, axis, self.random.randint(2)), [a]
            )
        elif self.chance(0.5):
            self.step("tf.unstack(t%d, axis=%d)[%d]" % (a, axis, self.random.randint(dim)), [a])
        else:
            ways = self.one([w for w in range(1, dim + 1) if dim % w == 0])
            self.step("tf.split(t%d, %d, %d)[%d]" % (a, ways, axis, self.random.randint(ways)), [a])

    def transpose(self) -> None:
        a = self.pick(lambda n: len(self.shape(n)) > 1)
        if a is not None:
            self.step(
                "tf.transpose(t%d, %r)" % (a, self.random.permutation(len(self.shape(a))).tolist()), [a]
            )

    def view(self) -> None:
        a = self.pick(lambda n: len(self.shape(n)) > 0)
        shape = self.shape(a)
        kind = self.random.randint(4)
        if kind == 0:
            self.step("tf.expand_dims(t%d, %d)" % (a, self.random.randint(len(shape) + 1)), [a])
        elif kind == 1 and len(shape) > 1:
            at = self.random.randint(len(shape) - 1)
            self.step(
                "tf.reshape(t%d, %r)" % (a, shape[:at] + [shape[at] * shape[at + 1]] + shape[at + 2 :]), [a]
            )
        elif kind == 2:
            at = self.random.randint(len(shape))
            ways = [w for w in range(1, shape[at] + 1) if shape[at] % w == 0]
            if ways:
                outer = self.one(ways)
                self.step(
                    "tf.reshape(t%d, %r)" % (a, shape[:at] + [outer, shape[at] // outer] + shape[at + 1 :]),
                    [a],
                )
        elif 1 in shape:
            self.step("tf.squeeze(t%d, [%d])" % (a, shape.index(1)), [a])

    def spread(self) -> None:
        a = self.pick(lambda n: self.is_float(n) and 0 < len(self.shape(n)) < 4)
        if a is None:
            return
        rank = len(self.shape(a))
        if self.chance(0.5):
            self.step("tf.tile(t%d, %r)" % (a, self.random.randint(1, 4, rank).tolist()), [a])
        else:
            self.step("tf.pad(t%d, %r)" % (a, self.random.randint(0, 3, (rank, 2)).tolist()), [a])

    def gather(self) -> None:
        tables = [n for n, s in enumerate(self.sources) if s.kind == "index"]
        if not tables:
            return
        index = self.one(tables)
        limit = self.sources[index].limit
        a = self.pick(lambda n: self.is_float(n) and limit in self.shape(n))
        if a is not None:
            self.step("tf.gather(t%d, t%d, axis=%d)" % (a, index, self.shape(a).index(limit)), [a, index])

    def make(self) -> Recipe:
        random = self.random
        zero = self.chance(0.05)
        base = [self.one(_DIMS) for _ in range(random.randint(1, 4))]
        if zero:
            base[random.randint(len(base))] = 0
        unknown = self.chance(0.35)
        special = self.chance(0.25)
        for at in range(random.randint(2, 5)):
            shape = list(base[random.randint(len(base)) :]) if at and self.chance(0.4) else list(base)
            shape = [1 if at and self.chance(0.2) else d for d in shape]
            self.source(
                shape,
                "special" if special else "float",
                unknown and len(shape) == len(base) and shape[0] == base[0],
            )
        if self.chance(0.3):
            self.source(base, "int")
        if self.chance(0.5) and base[0] > 0:
            self.source([self.one((1, 3, 5, 8))], "index", limit=base[0])
        families = (
            (self.unary,) * 5
            + (self.binary,) * 6
            + (self.select,)
            + (self.concat,) * 2
            + (self.slice,) * 2
            + (self.split,) * 2
            + (self.transpose,) * 2
            + (self.view,) * 2
            + (self.spread, self.gather)
        )
        if not special:  # which NaN wins a reduction depends on TF's order of accumulation
            families += (self.reduce,) * 3 + (self.arg_reduce, self.norm)
        wanted = random.randint(4, 26)
        for _ in range(4 * wanted):
            if len(self.steps) >= wanted:
                break
            self.one(families)()
        results = range(len(self.sources), len(self.sources) + len(self.steps))
        fetched = sorted({results[-1]} | {n for n in results if random.rand() < 0.15}) if self.steps else []
        return Recipe(self.seed, tuple(self.sources), tuple(self.steps), tuple(fetched))


def generate(seed: int) -> Recipe:
    """The recipe of this seed; its shapes are all static, `unknown` sources hide dim 0 from the graph."""
    with tf.Graph().as_default():
        return _Maker(seed).make()


def buildable(recipe: Recipe) -> Recipe:
    """The recipe, with all dims known where an op wants that of TF's graph builder (unstack)."""
    try:
        with tf.Graph().as_default():
            build(recipe)
        return recipe
    except ValueError:
        return recipe._replace(sources=tuple(s._replace(unknown=False) for s in recipe.sources))
