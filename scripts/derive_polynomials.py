"""Derives the polynomials of the host target's vector math: npu_kernels/host/polynomials.h.

    python scripts/derive_polynomials.py [--check]

Each row of FITS is one minimax problem: coefficients of a polynomial P in z(x) that make the largest weighted
error |P(z(x)) - g(x)| * w(x) over an interval as small as it gets, w being such that this is the relative
error of the function that P is a part of. The exchange algorithm of Remez solves it in 40 digits with mpmath,
which knows the functions; the coefficients are then rounded to the type that computes. The error in the
header's comment is measured with the rounded coefficients. --check says whether the header is what this
script writes.
"""
import sys
from pathlib import Path
from typing import Callable, NamedTuple

from mpmath import mp, mpf

HEADER = Path(__file__).resolve().parent.parent / "npu_kernels" / "host" / "polynomials.h"
mp.dps = 40
LN2 = mp.log(2)
SQRT2 = mp.sqrt(2)


class Fit(NamedTuple):
    """name: of the C function af_<name>_<f32|f64>; degree of P in z; low, high: interval of x."""

    name: str
    kind: str
    degree: int
    low: float
    high: float
    target: Callable
    weight: Callable
    variable: Callable = lambda x: x
    what: str = ""


def _square(x):
    return x * x


def _expm1_rest(r):
    return (mp.expm1(r) - r) / (r * r)


def _expm1_weight(r):
    return r * r / abs(mp.expm1(r))


def _log_rest(f):
    return (mp.log1p(f) - f + f * f / 2) / f ** 3


def _atanh_rest(s):
    return (2 * mp.atanh(s) / s - 2) / (s * s)


def _asin_rest(x):
    return (mp.asin(x) / x - 1) / (x * x)


def _atan_rest(x):
    return (mp.atan(x) / x - 1) / (x * x)


def _tanh_rest(x):
    return (mp.tanh(x) / x - 1) / (x * x)


def _odd_weight(function):
    """Of f(x) = x + x^3 P(x^2), or a multiple: the relative error that an error of P makes."""
    return lambda x: x ** 3 / abs(function(x))


ERFCX_SCALE = mpf(3)


def _erfcx(t):
    """exp(x^2) erfc(x) for x with t = (x - k) / (x + k)."""
    x = ERFCX_SCALE * (1 + t) / (1 - t)
    return mp.exp(x * x) * mp.erfc(x)


def _erfcx_end(x):
    return (mpf(x) - ERFCX_SCALE) / (mpf(x) + ERFCX_SCALE)


_HALF_LN2 = LN2 / 2 * mpf("1.001")
_ATANH_END = (SQRT2 - 1) / (SQRT2 + 1) * mpf("1.001")
_TAN_EIGHTH = (SQRT2 - 1) * mpf("1.001")

#: The wide_ rows are computed in float64 and serve float32 functions: their errors are far below float32's.
FITS = (
    Fit("exp_rest", "f32", 4, -_HALF_LN2, _HALF_LN2, _expm1_rest, lambda r: r * r / mp.exp(r),
        what="exp(r) = 1 + r + r^2 P(r), |r| <= log(2)/2"),
    Fit("expm1_rest", "f32", 5, -_HALF_LN2, _HALF_LN2, _expm1_rest, _expm1_weight,
        what="exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2"),
    Fit("log_rest", "f32", 8, 1 / SQRT2 - 1, SQRT2 - 1, _log_rest, lambda f: abs(f ** 3 / mp.log1p(f)),
        what="log(1 + f) = f - f^2/2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2)"),
    Fit("tanh_small", "f32", 2, "1e-9", _HALF_LN2 * 3 / 4, _tanh_rest, _odd_weight(mp.tanh), _square,
        what="tanh(u) = u + u^3 P(u^2), |u| <= 3/8 log(2)"),
    Fit("erf_decay", "f32", 8, "1e-9", "3.93", lambda x: -mp.log(mp.erfc(x)) / x - 1,
        lambda x: x * mp.erfc(x) / mp.erf(x), what="-log(1 - erf(x)) = x + x P(x), 0 <= x <= 3.93"),
    Fit("decay", "f32", 4, -_HALF_LN2, _HALF_LN2, _expm1_rest, _expm1_weight,
        what="exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2"),
    Fit("wide_expm1_rest", "f64", 5, -_HALF_LN2, _HALF_LN2, _expm1_rest, _expm1_weight,
        what="exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2"),
    Fit("wide_atanh_rest", "f64", 4, "1e-9", _ATANH_END, _atanh_rest, _odd_weight(mp.atanh), _square,
        what="log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2), |s| <= 0.1716"),
    Fit("wide_sin", "f64", 4, "1e-9", "0.5005", lambda r: mp.sin(mp.pi / 2 * r) / r,
        lambda r: r / mp.sin(mp.pi / 2 * r), _square, what="sin(pi/2 r) = r P(r^2), |r| <= 1/2"),
    Fit("wide_cos", "f64", 4, 0, "0.5005", lambda r: mp.cos(mp.pi / 2 * r),
        lambda r: 1 / mp.cos(mp.pi / 2 * r), _square, what="cos(pi/2 r) = P(r^2), |r| <= 1/2"),
    Fit("wide_asin_rest", "f64", 6, "1e-9", "0.5", _asin_rest, _odd_weight(mp.asin), _square,
        what="asin(x) = x + x^3 P(x^2), |x| <= 1/2"),
    Fit("wide_atan_rest", "f64", 5, "1e-9", _TAN_EIGHTH, _atan_rest, _odd_weight(mp.atan), _square,
        what="atan(x) = x + x^3 P(x^2), |x| <= tan(pi/8)"),
    Fit("wide_erfcx", "f64", 12, -1, _erfcx_end("10.2"), _erfcx, lambda t: 1 / _erfcx(t),
        what="exp(x^2) erfc(x) = P((x - 3) / (x + 3)), 0 <= x <= 10.2"),
    Fit("exp_rest", "f64", 9, -_HALF_LN2, _HALF_LN2, _expm1_rest, lambda r: r * r / mp.exp(r),
        what="exp(r) = 1 + r + r^2 P(r), |r| <= log(2)/2"),
    Fit("expm1_rest", "f64", 10, -_HALF_LN2, _HALF_LN2, _expm1_rest, _expm1_weight,
        what="exp(r) - 1 = r + r^2 P(r), |r| <= log(2)/2"),
    Fit("tanh_rest", "f64", 11, "1e-9", "0.551", _tanh_rest, _odd_weight(mp.tanh), _square,
        what="tanh(x) = x + x^3 P(x^2), |x| <= 0.55"),
    Fit("atanh_rest", "f64", 7, "1e-9", _ATANH_END, _atanh_rest, _odd_weight(mp.atanh), _square,
        what="log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2), |s| <= 0.1716"),
)


def _value(coefficients, z):
    return mp.polyval(list(reversed(coefficients)), z)


def _points(fit, count):
    """Chebyshev points of the interval, the ends among them."""
    low, high = mpf(fit.low), mpf(fit.high)
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


def _extrema(errors, wanted):
    """Indexes of alternating extrema of a sampled error; the `wanted` consecutive ones with the largest least
    error."""
    found = []
    for i, e in enumerate(errors):
        if found and (errors[found[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[found[-1]]):
                found[-1] = i
        else:
            found.append(i)
    while len(found) > wanted:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return found


def minimax(fit: Fit):
    """Coefficients, lowest power first, in full precision. Raises ArithmeticError without convergence."""
    grid = [x for x in _points(fit, 40 * (fit.degree + 2)) if x != 0]
    target = [fit.target(x) for x in grid]
    weight = [fit.weight(x) for x in grid]
    z = [fit.variable(x) for x in grid]
    size = fit.degree + 2
    start = _points(fit, size)
    chosen = sorted({min(range(len(grid)), key=lambda k, x=x: abs(grid[k] - x)) for x in start})
    for _ in range(30):
        rows = [[z[k] ** j for j in range(fit.degree + 1)] + [(-1) ** i / weight[k]]
                for i, k in enumerate(chosen)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([target[k] for k in chosen]))
        coefficients, level = list(solution)[:-1], abs(solution[fit.degree + 1])
        errors = [(_value(coefficients, a) - t) * w for a, t, w in zip(z, target, weight)]
        if max(map(abs, errors)) < level * mpf("1.01"):
            return coefficients
        chosen = _extrema(errors, size)
        if len(chosen) < size:
            raise ArithmeticError("%s %s: the error alternates too seldom" % (fit.name, fit.kind))
    raise ArithmeticError("%s %s: no convergence" % (fit.name, fit.kind))


def rounded(value, kind: str):
    """The nearest float32 or float64."""
    with mp.workprec(24 if kind == "f32" else 53):
        return +value


def literal(value, kind: str) -> str:
    return float(value).hex().replace("0000000p", "p") + ("f" if kind == "f32" else "")


def function(fit: Fit) -> str:
    """The C of one polynomial, by Horner's rule."""
    coefficients = [rounded(c, fit.kind) for c in minimax(fit)]
    grid = [x for x in _points(fit, 2000) if x != 0]
    error = max(abs((_value(coefficients, fit.variable(x)) - fit.target(x)) * fit.weight(x)) for x in grid)
    ctype = "float" if fit.kind == "f32" else "double"
    lines = ["/* %s: relative error 2^%.1f. */" % (fit.what, mp.log(error, 2)),
             "static inline %s af_poly_%s_%s(%s z) {" % (ctype, fit.name, fit.kind, ctype),
             "  %s p = %s;" % (ctype, literal(coefficients[-1], fit.kind))]
    lines += ["  p = af_fma_%s(p, z, %s);" % (fit.kind, literal(c, fit.kind))
              for c in reversed(coefficients[:-1])]
    return "\n".join(lines + ["  return p;", "}", ""])


def header() -> str:
    return "\n".join([
        "/* Minimax polynomials of the vector math, written by scripts/derive_polynomials.py. */",
        "#ifndef AUTOFUSE_HOST_POLYNOMIALS_H", "#define AUTOFUSE_HOST_POLYNOMIALS_H", '#include "bits.h"', "",
        "\n".join(function(fit) for fit in FITS) + "#endif", ""])


def main() -> int:
    text = header()
    if "--check" in sys.argv[1:]:
        same = HEADER.read_text() == text
        print("%s is %s" % (HEADER.name, "as derived" if same else "not what this script derives"))
        return 0 if same else 1
    HEADER.write_text(text)
    print("\n".join(line for line in text.splitlines() if "relative error" in line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
