"""The sympy side of sizes: integer functions in canonical form, and the printers.

Why apart from size.py: this module imports sympy (0.3 s), which a graph of static shapes never needs; size.py
imports it on the first symbol. On entry and exit of everything here: sympy expressions over integer symbols
>= 0, built from + - * and positive integer powers (no division, no rationals) and the functions below. A
simplification holds for every value >= 0 of the symbols; those of `broadcast_size` hold for compatible dims,
which a 'broadcast' guard checks.

Argument order and term order come from the printed text, never from hashes: texts, C++ and golden files are
the same on every run and with every sympy version.
"""
import math
from functools import lru_cache
from operator import itemgetter
from typing import Callable, Mapping

import sympy
from sympy import Integer


def new_symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, nonnegative=True)


@lru_cache(maxsize=1 << 16)
def is_nonnegative(e) -> bool:
    """Whether e >= 0 follows from its form. False: not known. (sympy's own query costs 50 times as much.)"""
    if e.is_Integer:
        return e >= 0
    if e.is_Symbol:
        return True
    if isinstance(e, Max):
        return any(is_nonnegative(a) for a in e.args)
    if isinstance(e, stride_or_zero):
        return is_nonnegative(e.args[1])
    if e.is_Pow:
        return int(e.args[1]) % 2 == 0 or is_nonnegative(e.args[0])
    return all(is_nonnegative(a) for a in e.args)  # Add, Mul, Min, floor_div, broadcast_size


@lru_cache(maxsize=1 << 16)
def is_never_one(e) -> bool:
    """Whether e != 1 for every value of the symbols follows from its form. False: not known."""
    if e.is_Integer:
        return e != 1
    if e.is_Mul and e.args[0].is_Integer:
        return abs(e.args[0]) >= 2
    return e.is_Add and is_nonnegative(e - 2)


def _order(e):
    return (not e.is_Integer, not e.is_Symbol, text(e))


def _terms(e):
    """[(integer coefficient, rest)] of a sum; rest is 1 for the constant."""
    return [a.as_coeff_Mul() for a in (e.args if e.is_Add else (e,))]


class floor_div(sympy.Function):
    """floor(a / b); 0 where b is 0."""

    is_integer = True

    @classmethod
    def eval(cls, a, b):
        if b == 1:
            return a
        if a == 0 or b == 0:
            return Integer(0)
        if not b.is_Integer or b < 0:
            return Integer(int(a) // int(b)) if a.is_Integer and b.is_Integer else None
        divisor = int(b)
        if a.is_Integer:
            return Integer(int(a) // divisor)
        if isinstance(a, floor_div) and a.args[1].is_Integer and a.args[1] > 0:
            return cls(a.args[0], a.args[1] * b)
        # Whole multiples of the divisor leave the quotient; then a common factor of the rest and the divisor
        # goes.
        whole, rest, constant, common = Integer(0), Integer(0), 0, divisor
        for coefficient, factor in _terms(a):
            coefficient = int(coefficient)
            if factor == 1:
                constant = coefficient % divisor
                whole += coefficient // divisor
            elif coefficient % divisor == 0:
                whole += coefficient // divisor * factor
            else:
                rest += coefficient * factor
                common = math.gcd(common, coefficient)
        if common > 1:
            rest = sympy.Add(*[int(c) // common * f for c, f in _terms(rest)]) if rest != 0 else rest
            return whole + cls(rest + constant // common, Integer(divisor // common))
        if isinstance(rest, floor_div) and rest.args[1].is_Integer and rest.args[1] > 0:
            inner = rest.args[1]
            return whole + cls(rest.args[0] + inner * constant, inner * divisor)
        return whole + cls(rest + constant, b) if whole != 0 else None

    def _eval_is_nonnegative(self):
        return True if is_nonnegative(self) else None


class _Symmetric(sympy.Function):
    """A function of two or more sizes whose value depends on neither their order nor repetition."""

    is_integer = True

    @classmethod
    def eval(cls, *args):
        flat = []
        for a in args:
            for x in a.args if isinstance(a, cls) else (a,):
                if x not in flat:
                    flat.append(x)
        kept = sorted(cls._reduced(flat), key=_order)
        if len(kept) == 1:
            return kept[0]
        return None if tuple(kept) == args else cls(*kept)

    def _eval_is_nonnegative(self):
        return True if is_nonnegative(self) else None


def _without(args, is_beaten):
    """args less those that another kept one beats; at least one stays."""
    kept = list(args)
    for a in args:
        if any(b is not a and is_beaten(a, b) for b in kept):
            kept.remove(a)
    return kept


class Max(_Symmetric):
    @classmethod
    def _reduced(cls, args):
        return _without(args, lambda a, b: is_nonnegative(b - a))


class Min(_Symmetric):
    @classmethod
    def _reduced(cls, args):
        return _without(args, lambda a, b: is_nonnegative(a - b))


class broadcast_size(_Symmetric):
    """The dim that broadcasting makes of compatible dims: the one that is not 1."""

    @classmethod
    def _reduced(cls, args):
        # A dim known to be other than 1 decides: every partner is equal to it or 1.
        sure = [a for a in args if is_never_one(a)]
        if sure:
            return [min(sure, key=_order)]
        return [a for a in args if a != 1] or [Integer(1)]


class stride_or_zero(sympy.Function):
    """0 where dim is 1, else stride."""

    is_integer = True

    @classmethod
    def eval(cls, dim, stride):
        if dim == 1 or stride == 0:
            return Integer(0)
        return stride if is_never_one(dim) else None

    def _eval_is_nonnegative(self):
        return True if is_nonnegative(self) else None


FUNCTIONS = {f.__name__: f for f in (floor_div, Max, Min, broadcast_size, stride_or_zero)}


def unknown(e) -> TypeError:
    return TypeError("not a size: %s has a part of type %s" % (e, type(e).__name__))


def _degree(e) -> int:
    if e.is_Mul:
        return sum(_degree(a) for a in e.args)
    return int(e.args[1]) * _degree(e.args[0]) if e.is_Pow else int(not e.is_Integer)


def ordered_terms(e):
    """The terms of a sum as (coefficient, rest, text of rest): higher degree first, the constant last."""
    rows = [(int(c), rest, text(rest)) for c, rest in _terms(e)]
    return sorted(rows, key=lambda row: (-_degree(row[1]), row[0] < 0, row[2]))


def ordered_factors(e):
    """(integer coefficient, factors in their printed order) of a product."""
    coefficient, rest = e.as_coeff_Mul()
    if not coefficient.is_Integer:
        raise unknown(e)
    return int(coefficient), sorted(rest.args if rest.is_Mul else (rest,), key=_order)


@lru_cache(maxsize=1 << 16)
def text(e) -> str:
    """`e` as `size.parse` reads it. Raises TypeError for what no size has (rationals, foreign functions)."""
    if e.is_Integer or e.is_Symbol:
        return str(e)
    if e.is_Add:
        words = []
        for coefficient, rest, shown in ordered_terms(e):
            if rest == 1:
                shown = str(abs(coefficient))
            else:
                shown = "(%s)" % shown if rest.is_Add else shown
                shown = shown if abs(coefficient) == 1 else "%d*%s" % (abs(coefficient), shown)
            words.append((" - " if coefficient < 0 else " + ") + shown)
        line = "".join(words)
        return "-" + line[3:] if line.startswith(" - ") else line[3:]
    if e.is_Mul:
        coefficient, factors = ordered_factors(e)
        shown = "*".join("(%s)" % text(f) if f.is_Add else text(f) for f in factors)
        return {1: "", -1: "-"}.get(coefficient, "%d*" % coefficient) + shown
    if e.is_Pow:
        base, power = e.args
        if not (power.is_Integer and power > 0):
            raise unknown(e)
        return ("(%s)**%d" if base.is_Add or base.is_Mul else "%s**%d") % (text(base), int(power))
    if type(e) in FUNCTIONS.values():
        return "%s(%s)" % (type(e).__name__, ", ".join(text(a) for a in e.args))
    raise unknown(e)


CPP_NAMES = {
    "floor_div": "FloorDiv",
    "broadcast_size": "BroadcastSize",
    "stride_or_zero": "StrideOrZero",
    "Max": "Max",
    "Min": "Min",
}


def cpp(e, names: Mapping[str, str]) -> str:
    """`e` as a C++ expression of type int64_t, given that the symbols' lvalues are int64_t."""
    if e.is_Integer:
        return str(e)
    if e.is_Symbol:
        return names.get(e.name, e.name)
    if e.is_Add:
        line = ""
        for coefficient, rest, _ in ordered_terms(e):
            if rest == 1:
                shown = str(abs(coefficient))
            else:
                shown = cpp(rest, names)
                shown = shown if abs(coefficient) == 1 else "%d * %s" % (abs(coefficient), shown)
            line += (" - " if coefficient < 0 else " + ") + shown
        return "(%s)" % (line[3:] if line.startswith(" + ") else "-" + line[3:])
    if e.is_Mul:
        coefficient, factors = ordered_factors(e)
        shown = [cpp(f, names) for f in factors]
        return "(%s)" % " * ".join(shown if coefficient == 1 else [str(coefficient)] + shown)
    if e.is_Pow:
        base, power = e.args
        return "(%s)" % " * ".join([cpp(base, names)] * int(power))
    if type(e) not in FUNCTIONS.values():
        raise unknown(e)
    args = [cpp(a, names) for a in e.args]
    line = args[0]
    for a in args[1:]:
        line = "%s(%s, %s)" % (CPP_NAMES[type(e).__name__], line, a)
    return line


def _first_not_one(values):
    for v in values:
        if v != 1:
            return v
    return 1


def evaluator(e) -> Callable[[Mapping[str, int]], int]:
    """A function from symbol values to the value of `e`; agrees with `cpp`. It raises KeyError(name) for a
    symbol without value."""
    if e.is_Integer:
        constant = int(e)
        return lambda values: constant
    if e.is_Symbol:
        return itemgetter(e.name)
    if e.is_Pow:
        base, power = evaluator(e.args[0]), int(e.args[1])
        return lambda values: base(values) ** power
    if e.is_Mul and e.args[0].is_Integer and len(e.args) == 2:
        factor, rest = int(e.args[0]), evaluator(e.args[1])
        return lambda values: factor * rest(values)
    parts = [evaluator(a) for a in e.args]
    if e.is_Add:
        return lambda values: sum([p(values) for p in parts])
    if e.is_Mul:

        def product(values):
            result = 1
            for p in parts:
                result *= p(values)
            return result

        return product
    if isinstance(e, Max):
        return lambda values: max([p(values) for p in parts])
    if isinstance(e, Min):
        return lambda values: min([p(values) for p in parts])
    if isinstance(e, broadcast_size):
        return lambda values: _first_not_one([p(values) for p in parts])
    if isinstance(e, (floor_div, stride_or_zero)):
        first, second = parts
        if isinstance(e, stride_or_zero):
            return lambda values: 0 if first(values) == 1 else second(values)

        def divide(values):
            b = second(values)
            return first(values) // b if b else 0

        return divide
    raise unknown(e)


def _sample(names, salt: int) -> Mapping[str, int]:
    return {n: 2 + (sum(ord(c) * (i + 3) for i, c in enumerate(n)) * 31 + salt * 17) % 97 for n in names}


@lru_cache(maxsize=1 << 16)
def always_equal(a, b) -> bool:
    """Whether a == b for every value of the symbols, as far as expansion shows it."""
    if a == b:
        return True
    # Two different values at one point settle it at a hundredth of an expansion's cost.
    values = _sample({s.name for s in a.free_symbols | b.free_symbols}, 1)
    if evaluator(a)(values) != evaluator(b)(values):
        return False
    return (a - b).expand() == 0


def _powers(e):
    """(coefficient, {factor: power}) of a monomial."""
    coefficient, rest = e.as_coeff_Mul()
    powers = {}
    for f in rest.args if rest.is_Mul else (rest,):
        base, power = f.args if f.is_Pow else (f, 1)
        if base != 1:
            powers[base] = powers.get(base, 0) + int(power)
    return int(coefficient), powers


@lru_cache(maxsize=1 << 14)
def exact_quotient(a, b):
    """q with integer coefficients such that q * b == a identically, or None."""
    top, top_powers = _powers(a)
    bottom, bottom_powers = _powers(b)
    if top == 0 and bottom != 0:
        return Integer(0)
    if bottom == 0:
        return None
    if top % bottom == 0 and all(top_powers.get(f, 0) >= p for f, p in bottom_powers.items()):
        return sympy.Mul(
            Integer(top // bottom), *[f ** (p - bottom_powers.get(f, 0)) for f, p in top_powers.items()]
        )
    if not (a.has(sympy.Add) or b.has(sympy.Add)):
        return None
    # Polynomial division, with our functions as opaque generators.
    opaque = {
        f: sympy.Dummy(integer=True) for f in (a.atoms(*FUNCTIONS.values()) | b.atoms(*FUNCTIONS.values()))
    }
    numerator, denominator = sympy.cancel(a.xreplace(opaque) / b.xreplace(opaque)).as_numer_denom()
    if denominator != 1:
        return None
    q = numerator.xreplace({dummy: f for f, dummy in opaque.items()})
    return q if (q * b - a).expand() == 0 else None
