"""Where the polynomial coefficients of the float device helpers come from.

Each is the near-minimax fit of a smooth function on an interval, the error weighted so that it is relative to
the helper's result: weighted least squares on Chebyshev nodes, the weights multiplied by the error until it
is even (Lawson's iteration). Run it with mpmath and numpy: it prints every polynomial, rounded to float, and
its error.
"""

import math

import mpmath as mp
import numpy as np

mp.mp.prec = 120


def fit(function, low, high, degree, weight, nodes=1200, rounds=60):
    """(largest weighted error, coefficients in ascending order) on [low, high]."""
    x = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes) * (high - low) / 2 + (high + low) / 2
    y = np.array([float(function(mp.mpf(float(v)))) for v in x])
    w = np.array([float(weight(mp.mpf(float(v)))) for v in x])
    matrix = np.vander(x, degree + 1, increasing=True)
    emphasis = np.ones(nodes) / nodes
    best = None
    for _ in range(rounds):
        scale = np.sqrt(emphasis) * w
        c = np.linalg.lstsq(matrix * scale[:, None], y * scale, rcond=None)[0]
        error = np.abs((matrix @ c - y) * w)
        if best is None or error.max() < best[0]:
            best = (error.max(), c)
        emphasis = emphasis * error
        emphasis /= emphasis.sum()
    return best


def odd(f):
    """P of f(x) = x + x^3 P(x^2), and its weight relative to f."""
    return (
        lambda t: (f(mp.sqrt(t)) - mp.sqrt(t)) / mp.sqrt(t) ** 3,
        lambda t: mp.sqrt(t) ** 3 / f(mp.sqrt(t)),
    )


def erfc_scaled(t):
    """exp(a^2) erfc(a) (1 + 2a) with t = (a - 2)/(a + 2)."""
    a = 2 * (1 + t) / (1 - t)
    return mp.exp(a * a) * mp.erfc(a) * (1 + 2 * a)


def at(a):
    return (a - 2.0) / (a + 2.0)


QUARTER = (math.pi / 4 + 0.01) ** 2
TABLE = {  # name: (function, weight), low, high, degree
    "expm1 = x + x^2 P(x)": (
        (lambda x: (mp.expm1(x) - x) / x**2, lambda x: x**2 / mp.expm1(x)),
        -0.72,
        0.72,
        6,
    ),
    "log1p = x - x^2/2 + x^3 P(x)": (
        (lambda x: (mp.log1p(x) - x + x**2 / 2) / x**3, lambda x: x**3 / mp.log1p(x)),
        -0.3,
        0.42,
        8,
    ),
    "tanh": (odd(mp.tanh), 1e-12, 0.625**2, 4),
    "sinh": (odd(mp.sinh), 1e-12, 1.0, 3),
    "asinh": (odd(mp.asinh), 1e-12, 1.02, 10),
    "acosh(1+t) = sqrt(2t) (1 + t P(t))": (
        (
            lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t,
            lambda t: t * mp.sqrt(2 * t) / mp.acosh(1 + t),
        ),
        1e-9,
        1.02,
        7,
    ),
    "atanh": (odd(mp.atanh), 1e-12, 0.255, 6),
    "erf = x + x Q(x^2)": (
        (lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t) - 1, lambda t: mp.sqrt(t) / mp.erf(mp.sqrt(t))),
        1e-12,
        1.02,
        7,
    ),
    "erfc = exp(-a^2) N(t)/(1 + 2a)": ((erfc_scaled, lambda t: 1 / erfc_scaled(t)), at(0.49), at(10.1), 10),
    "sin": (odd(mp.sin), 1e-12, QUARTER, 3),
    "cos = 1 - t/2 + t^2 P(t)": (
        (lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2 / mp.cos(mp.sqrt(t))),
        1e-9,
        QUARTER,
        3,
    ),
    "tan": (odd(mp.tan), 1e-12, QUARTER, 6),
    "asin": (odd(mp.asin), 1e-12, 0.25, 5),
    "atan": (odd(mp.atan), 1e-12, 1.0, 10),
    "atanh in pow = s + s^3/3 + s^5 R(s^2)": (
        (
            lambda t: (mp.atanh(mp.sqrt(t)) - mp.sqrt(t) - mp.sqrt(t) ** 3 / 3) / mp.sqrt(t) ** 5,
            lambda t: mp.sqrt(t) ** 5 / mp.atanh(mp.sqrt(t)),
        ),
        1e-9,
        0.1716**2 * 1.02,
        2,
    ),
}

if __name__ == "__main__":
    for name, ((function, weight), low, high, degree) in TABLE.items():
        error, c = fit(function, low, high, degree, weight)
        print("%-40s error 2^%.1f  %s" % (name, math.log2(error), [float(np.float32(v)) for v in c]))
