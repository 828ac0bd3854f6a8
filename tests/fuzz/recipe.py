"""A random graph as text: what the fuzzer makes, runs, shrinks and writes down.

A recipe is a list of Python expressions over `tf`, `F` (the float dtype that the graph computes in) and the
results t0, t1, ... of the steps before. The same text builds the graph in float32 for both sides, in float64
for the reference, and stands in the script that a failure leaves behind: there is no second description that
could differ.
"""

import re
from typing import Dict, List, NamedTuple, Tuple

import numpy as np
import tensorflow as tf

_NAME = re.compile(r"\bt(\d+)\b")


class Source(NamedTuple):
    """A placeholder. shape: of the values that are fed. unknown: whether dim 0 is unknown to the graph. kind:
    'float', 'special' (with NaN, infinities, -0.0), 'int' or 'index'. limit: int values are in [0, limit)."""

    shape: Tuple[int, ...]
    kind: str
    unknown: bool = False
    limit: int = 0


class Step(NamedTuple):
    """text: the expression. exact: whether the result must have TF's very bits."""

    text: str
    exact: bool

    @property
    def reads(self) -> Tuple[int, ...]:
        return tuple(int(n) for n in _NAME.findall(self.text))


class Recipe(NamedTuple):
    """t0 ... t(n-1) are the sources, then the steps. fetches: numbers of results."""

    seed: int
    sources: Tuple[Source, ...]
    steps: Tuple[Step, ...]
    fetches: Tuple[int, ...]

    def exact(self, number: int) -> bool:
        at = number - len(self.sources)
        return at < 0 or self.steps[at].exact


def values_of(recipe: Recipe) -> List[np.ndarray]:
    """The arrays that are fed, in the order of the sources."""
    found = []
    for at, source in enumerate(recipe.sources):
        random = np.random.RandomState((recipe.seed * 1000003 + at) % (1 << 32))
        if source.kind in ("int", "index"):
            low, high = (-9, 10) if source.kind == "int" else (0, source.limit)
            found.append(random.randint(low, high, source.shape).astype(np.int32))
            continue
        array = np.asarray(random.uniform(-2, 2, source.shape), np.float32)
        if source.kind == "special":
            flat = array.reshape(-1)
            specials = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0])
            at_most = max(1, flat.size // 6) if flat.size else 0
            flat[random.randint(0, max(flat.size, 1), at_most)] = specials[random.randint(0, 5, at_most)]
            array = flat.reshape(source.shape)
        found.append(array)
    return found


def build(recipe: Recipe, float_dtype=tf.float32) -> Dict[int, tf.Tensor]:
    """The recipe in the default graph: result number -> tensor."""
    tensors: Dict[int, tf.Tensor] = {}
    for at, source in enumerate(recipe.sources):
        shape = list(source.shape)
        if source.unknown and shape:
            shape[0] = None
        dtype = tf.int32 if source.kind in ("int", "index") else float_dtype
        tensors[at] = tf.compat.v1.placeholder(dtype, shape, "x%d" % at)
    for at, step in enumerate(recipe.steps, len(recipe.sources)):
        tensors[at] = apply(step.text, tensors, float_dtype)
    return tensors


def apply(text: str, tensors: Dict[int, tf.Tensor], float_dtype=tf.float32) -> tf.Tensor:
    """The tensor that one expression gives. Raises what TF raises for an expression that it does not take."""
    names = {"t%d" % n: tensors[n] for n in map(int, _NAME.findall(text))}
    return eval(text, {"tf": tf, "F": float_dtype}, names)  # the text is the fuzzer's own


def script_of(recipe: Recipe, target: str, what: str) -> str:
    """A script that runs the recipe plain and fused and compares, with nothing but TF and the plugin."""
    lines = [
        '"""%s"""' % what.replace('"""', "'''"),
        "import os",
        "",
        'os.environ["AUTOFUSE_TARGET"] = "%s"' % target,
        'os.environ["AUTOFUSE_BUILD"] = "sync"',
        'os.environ["AUTOFUSE_FLAGS"] = "--enable_autofuse=true;%s"' % ENABLE_FAMILIES,
        "import numpy as np",
        "import tensorflow as tf",
        "import tf_autofuse",
        "",
        "nan, inf, F = np.nan, np.inf, tf.float32",
    ]
    for at, (source, value) in enumerate(zip(recipe.sources, values_of(recipe))):
        shape = list(source.shape)
        if source.unknown and shape:
            shape[0] = None
        dtype = "tf.int32" if source.kind in ("int", "index") else "F"
        lines.append("t%d = tf.compat.v1.placeholder(%s, %r)" % (at, dtype, shape))
        lines.append(
            "v%d = np.array(%s, %s).reshape(%r)"
            % (
                at,
                np.array2string(
                    value.reshape(-1),
                    separator=", ",
                    threshold=1 << 30,
                    floatmode="unique" if value.dtype.kind == "f" else "maxprec",
                ).replace("\n", ""),
                "np.int32" if value.dtype.kind == "i" else "np.float32",
                source.shape,
            )
        )
    for at, step in enumerate(recipe.steps, len(recipe.sources)):
        lines.append("t%d = %s" % (at, step.text))
    lines += [
        "fetches = [%s]" % ", ".join("t%d" % n for n in recipe.fetches),
        "feed = {%s}" % ", ".join("t%d: v%d" % (n, n) for n in range(len(recipe.sources))),
        "",
        "plain = tf.compat.v1.ConfigProto()",
        "plain.graph_options.rewrite_options.disable_meta_optimizer = True",
        "fused = tf_autofuse.configure(tf.compat.v1.ConfigProto(), "
        'precision_mode="must_keep_origin_dtype")',
        "with tf.compat.v1.Session(config=plain) as session:",
        "    expected = session.run(fetches, feed)",
        "with tf.compat.v1.Session(config=fused) as session:",
        "    found = session.run(fetches, feed)",
        "for name, a, b in zip(%r, expected, found):" % (["t%d" % n for n in recipe.fetches],),
        '    print(name, "equal" if np.array_equal(a, b) else "differs", a.shape, a, b, sep="\\n")',
        "",
    ]
    return "\n".join(lines)


#: Every family that has a switch, on.
ENABLE_FAMILIES = "--autofuse_enable_pass=reduce,concat,slice,split,gather,transpose"
