"""The float functions against float64 references: worst error in ULP on dense sweeps; special values.

The limits of FUNCTIONS are what README.md of the helpers states, measured on the twin, whose Exp and Ln are
libm's.
"""

import math

import numpy as np
import pytest

from tests.twin import probes

erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_math")


def sweep(low, high, n=20000, seed=0):
    """Uniform over the range, uniform near zero, and uniform in the exponent down to 1e-30."""
    rng = np.random.RandomState(seed)
    sign = 1 if low >= 0 else rng.choice([-1, 1], n)
    near = rng.uniform(low if low > -1 else -1, min(1, high), n)
    return np.concatenate(
        [rng.uniform(low, high, n), near, 10.0 ** rng.uniform(-30, np.log10(high), n) * sign]
    ).astype(np.float32)


def ulps(got, want):
    """|got - want| in units of the last place of want; 0 where want overflows or is subnormal."""
    want = np.asarray(want, np.float64)
    normal = np.isfinite(want) & (abs(want) < 3.4e38) & (abs(want) > 1.2e-38)
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.maximum(abs(want).astype(np.float32), np.float32(1.2e-38))).astype(np.float64)
        return np.where(normal, abs(got.astype(np.float64) - want) / spacing, 0)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {  # reference, [inputs], limit in ULP
    "expm1": (np.expm1, [sweep(-20, 88)], 1.4),
    "log1p": (np.log1p, [sweep(0, 1e30), -sweep(0, 1)], 1.1),
    "sigmoid": (sigmoid, [sweep(-87, 88)], 2.0),
    "softplus": (softplus, [sweep(-85, 85)], 1.8),
    "tanh": (np.tanh, [sweep(-12, 12)], 1.4),
    "sinh": (np.sinh, [sweep(-89.4, 89.4)], 1.8),
    "cosh": (np.cosh, [sweep(-89.4, 89.4)], 1.7),
    "asinh": (np.arcsinh, [sweep(-1e5, 1e38)], 1.5),
    "acosh": (np.arccosh, [1 + sweep(0, 1e5), 1 + sweep(0, 3e38)], 1.7),
    "atanh": (np.arctanh, [sweep(-0.999999, 0.999999)], 1.5),
    "erf": (erf, [sweep(-5, 5)], 1.3),
    "erfc": (erfc, [sweep(-5, 9.1)], 2.0),
    "asin": (np.arcsin, [sweep(-1, 1)], 2.0),
    "acos": (np.arccos, [sweep(-1, 1)], 1.3),
    "atan": (np.arctan, [sweep(-100, 1e30)], 1.4),
    "sin": (np.sin, [sweep(-100, 100), sweep(-65536, 65536), sweep(-3e38, 3e38)], 1.2),
    "cos": (np.cos, [sweep(-100, 100), sweep(-65536, 65536), sweep(-3e38, 3e38)], 1.2),
    "tan": (np.tan, [sweep(-100, 100), sweep(-65536, 65536), sweep(-3e38, 3e38)], 1.7),
}
NAN, INF = np.nan, np.inf
SPECIALS = np.array(
    [
        NAN,
        INF,
        -INF,
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        -0.5,
        2,
        -2,
        3,
        -3,
        2.5,
        1e-40,
        -1e-40,
        1e38,
        -1e38,
        3e-39,
        16777216,
        16777217,
        3.4028235e38,
        -3.4028235e38,
        1e-30,
        0.99999994,
        1.0000001,
        88.5,
        -88.5,
        104,
        -104,
        89.2,
        65535.99,
        65536,
        1e5,
    ],
    np.float32,
)


def check_specials(got, want, *arguments):
    with np.errstate(all="ignore"):
        want = want.astype(np.float32)
        same = (np.isnan(got) & np.isnan(want)) | ((got == want) & (np.signbit(got) == np.signbit(want)))
        close = np.isfinite(want) & (want != 0) & (abs(got - want) <= 2.5 * np.spacing(abs(want)))
    wrong = np.flatnonzero(~(same | close))
    assert not len(wrong), [(tuple(a[i] for a in arguments), got[i], want[i]) for i in wrong[:5]]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_unary(run, name):
    reference, inputs, limit = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        for x in inputs:
            error = ulps(run(name, np.float32, x), reference(x.astype(np.float64)))
            worst = error.argmax()
            assert error[worst] <= limit, (x[worst], error[worst])
        check_specials(run(name, np.float32, SPECIALS), reference(SPECIALS.astype(np.float64)), SPECIALS)
        for n in list(range(1, 66)) + [255, 257, 511, 513, 2047, 2049]:
            x = inputs[0][:n]
            assert (ulps(run(name, np.float32, x), reference(x.astype(np.float64))) <= limit).all(), n


@pytest.mark.parametrize("name,reference,limit", [("pow", np.power, 1.0), ("atan2", np.arctan2, 1.6)])
def test_binary(run, name, reference, limit):
    rng = np.random.RandomState(1)
    n = 50000
    if name == "pow":
        cases = [
            (rng.uniform(0, 10, n), rng.uniform(-20, 20, n)),
            (np.exp(rng.uniform(-80, 80, n)), rng.uniform(-3, 3, n)),
            (rng.uniform(0.5, 1.5, n), rng.uniform(-200, 200, n)),
            (1 + rng.uniform(-1e-3, 1e-3, n), rng.uniform(-80000, 80000, n)),
            (rng.uniform(-10, 0, n), rng.randint(-20, 20, n)),
        ]
    else:
        cases = [(sweep(-10, 10), sweep(-10, 10, seed=1)), (sweep(-1e30, 1e30), sweep(-1e30, 1e30, seed=1))]
    with np.errstate(all="ignore"):
        for a, b in cases:
            a, b = a.astype(np.float32), b.astype(np.float32)
            error = ulps(run(name, np.float32, a, b), reference(a.astype(np.float64), b.astype(np.float64)))
            worst = error.argmax()
            assert error[worst] <= limit, (a[worst], b[worst], error[worst])
        a, b = (v.ravel() for v in np.meshgrid(SPECIALS, SPECIALS))
        check_specials(
            run(name, np.float32, a, b), reference(a.astype(np.float64), b.astype(np.float64)), a, b
        )


def test_ranges(run):
    """What must hold exactly: |tanh| <= 1, 0 <= sigmoid <= 1, |sin|, |cos| <= 1, |erf| <= 1."""
    x = np.concatenate([sweep(-100, 100), sweep(-3e38, 3e38)])
    for name in ("tanh", "sin", "cos", "erf"):
        assert (abs(run(name, np.float32, x)) <= 1).all(), name
    y = run("sigmoid", np.float32, x)
    assert (y >= 0).all() and (y <= 1).all()
