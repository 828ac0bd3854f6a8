"""The float helpers stay accurate on threads that flush denormals, as TensorFlow's do.

What an algorithm leaves in a denormal intermediate is lost there: over all exponents the error against
float64 must stay within the bound wherever the exact result is a normal number.
"""
import numpy as np
import pytest

from tests.ops.test_ascend_forms import ULPS, ulps
from tests.ops.tf_oracle import on_pool_thread, tf
from tests.ops.twin_handler import library
from tf_autofuse.ir.dtypes import FLOAT64
from tf_autofuse.ops.table import ASC_OPS

tf.compat.v1.disable_eager_execution()
SMALLEST = np.finfo(np.float32).tiny


@pytest.fixture(scope="module")
def run():
    return library()


def inputs(arity):
    generator = np.random.RandomState(arity)
    columns = []
    for _ in range(arity):
        size = np.exp2(np.concatenate([generator.uniform(-126, 127, 8000), generator.uniform(-12, 7, 8000)]))
        columns.append((size * generator.choice([-1, 1], 16000)).astype(np.float32))
    return columns


def test_the_threads_flush():
    tiny = np.full(1, SMALLEST, np.float32)
    assert on_pool_thread(lambda: tiny * np.float32(0.5)) == 0 and tiny * np.float32(0.5) > 0


@pytest.mark.parametrize("name", sorted(ULPS))
def test_helper_where_denormals_are_flushed(name, run):
    row = ASC_OPS[name]
    columns = inputs(row.arity)
    probe = "%s:%s:tensor" % (name, "-".join(["float32"] * (row.arity + 1)))
    ours = on_pool_thread(lambda: run(probe, np.float32, *columns))
    with np.errstate(all="ignore"):
        exact = row.evaluate([c.astype(np.float64) for c in columns], {}, FLOAT64)
    wrong = (ulps(ours, exact) > ULPS[name] + 0.5) & ~(np.abs(exact) < 1.01 * SMALLEST)
    at = np.flatnonzero(wrong)
    assert not len(at), [([c[i] for c in columns], ours[i], exact[i]) for i in at[:4]]
