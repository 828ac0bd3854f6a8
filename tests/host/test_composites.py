"""TF ops that are made of several AscIR types, on the host target's expressions, against float64.

docs/numerics.md has the measured figures; TensorFlow's own threads run the loops, so denormals are flushed.
"""
import numpy as np
import pytest

from tests.host import handler
from tests.ops.test_ascend_forms import ulps
from tests.ops.tf_oracle import on_pool_thread, tf
from tests.ops.twin_handler import run_op
from tf_autofuse.ir.dtypes import FLOAT32, FLOAT64
from tf_autofuse.ops.numpy_handler import evaluate_op

tf.compat.v1.disable_eager_execution()

#: op -> (interval of each input, worst error in ULPs)
OPS = {"Elu": (((-9, 2),), 1.6), "Selu": (((-9, 2),), 2), "Softplus": (((-30, 30),), 2),
       "Rsqrt": (((0, 9),), 1.5), "Xlogy": (((-4, 4), (0, 9)), 2), "Softsign": (((-9, 9),), 1.5),
       "TanhGrad": (((-1, 1), (-4, 4)), None)}


@pytest.fixture(scope="module")
def run():
    return handler.library()


@pytest.mark.parametrize("name", sorted(OPS))
def test_composite(name, run):
    intervals, bound = OPS[name]
    generator = np.random.RandomState(1)
    inputs = [generator.uniform(low, high, 40001).astype(np.float32) for low, high in intervals]
    ours = on_pool_thread(lambda: run_op(handler.HostHandler(run), name, inputs, FLOAT32))
    if bound is None:  # exact ops only: the same bits as numpy
        same = evaluate_op(name, inputs, (FLOAT32,) * len(inputs), FLOAT32)
        assert (ours.view(np.int32) == same.view(np.int32)).all()
        return
    wide = [x.astype(np.float64) for x in inputs]
    exact = evaluate_op(name, wide, (FLOAT64,) * len(inputs), FLOAT64)
    worst = int(np.argmax(ulps(ours, exact)))
    assert ulps(ours, exact)[worst] <= bound, ([x[worst] for x in inputs], ours[worst], exact[worst])
