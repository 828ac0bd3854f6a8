"""Symbolic expressions in the canonical form that the AscIR API promises.

Why apart from symbolic/: the sizes there are integers of this project's own text form; the API's
expressions are rational, may hold Floor, Mod, Sqrt and negative powers, and equality and text depend on
which rewrites are made (like terms and powers merge, constants fold) and which are not (a product is never
distributed over a sum).

An expression is a Fraction, or one of these tuples (hashable; equal expressions are equal tuples):

    ("symbol", name)
    ("sum", constant, ((term, coefficient), ...))
        constant and coefficients are Fractions, terms are no numbers
    ("product", coefficient, ((base, exponent), ...))
        exponents are expressions; a number is a base only below a symbolic or fractional exponent
    ("power", base, exponent)
        exponent is not 0 or 1
    ("call", function, arguments)
        Floor, Ceiling, Abs, Log, Exp, Mod; Max and Min: a set in canonical order

The parts of sums and products are sorted by their text, byte by byte. Functions here take and return
expressions."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Dict, Tuple, Union

Expression = Union[Fraction, Tuple]

ZERO, ONE, MINUS_ONE, HALF = Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2)
_SYMMETRIC = {"Max": max, "Min": min}
#: Numbers are raised to whole powers only up to this many bits; beyond it the power stays as it is written.
_MAX_BITS = 1 << 12


def is_number(e: Expression) -> bool:
    return isinstance(e, Fraction)


def is_integer(e: Expression) -> bool:
    return is_number(e) and e.denominator == 1


def symbol(name: str) -> Expression:
    return ("symbol", name)


def add(*terms: Expression) -> Expression:
    constant, parts = ZERO, {}  # type: Fraction, Dict[Expression, Fraction]
    for e in terms:
        if is_number(e):
            constant += e
        elif e[0] == "sum":
            constant += e[1]
            for term, coefficient in e[2]:
                parts[term] = parts.get(term, ZERO) + coefficient
        else:
            coefficient, term = _split(e)
            parts[term] = parts.get(term, ZERO) + coefficient
    kept = [(term, c) for term, c in parts.items() if c]
    if not kept:
        return constant
    if len(kept) == 1 and not constant:
        return _scaled(*kept[0])
    return ("sum", constant, tuple(sorted(kept, key=lambda pair: _key(pair[0]))))


def _split(e: Expression) -> Tuple[Fraction, Expression]:
    """(coefficient, the rest) of what is no sum or number."""
    if e[0] == "product" and e[1] != 1:
        return e[1], _product(ONE, dict(e[2]))
    return ONE, e


def _scaled(term: Expression, coefficient: Fraction) -> Expression:
    if coefficient == 1:
        return term
    if term[0] == "product":
        return _product(coefficient * term[1], dict(term[2]))
    base, exponent = _base_and_exponent(term)
    return _product(coefficient, {base: exponent})


def multiply(*factors: Expression) -> Expression:
    coefficient, powers = ONE, {}  # type: Fraction, Dict[Expression, Expression]
    for e in factors:
        if is_number(e):
            coefficient *= e
        elif e[0] == "product":
            coefficient *= e[1]
            for base, exponent in e[2]:
                powers[base] = add(powers.get(base, ZERO), exponent)
        else:
            base, exponent = _base_and_exponent(e)
            powers[base] = add(powers.get(base, ZERO), exponent)
    return _product(coefficient, powers)


def _base_and_exponent(e: Expression) -> Tuple[Expression, Expression]:
    return (e[1], e[2]) if e[0] == "power" else (e, ONE)


def _product(coefficient: Fraction, powers: Dict[Expression, Expression]) -> Expression:
    kept = {}
    for base, exponent in powers.items():
        if exponent == ZERO:
            continue
        folded = _number_power(base, exponent) if is_number(base) and is_number(exponent) else None
        if folded is None:
            kept[base] = exponent
        else:
            coefficient *= folded
    if not coefficient or not kept:
        return coefficient
    if len(kept) == 1 and coefficient == 1:
        ((base, exponent),) = kept.items()
        return base if exponent == ONE else ("power", base, exponent)
    return ("product", coefficient, tuple(sorted(kept.items(), key=lambda pair: _key(pair[0]))))


def negate(e: Expression) -> Expression:
    return multiply(MINUS_ONE, e)


def subtract(a: Expression, b: Expression) -> Expression:
    return add(a, negate(b))


def divide(a: Expression, b: Expression) -> Expression:
    """Exact division. Raises ZeroDivisionError for the number 0."""
    return multiply(a, power(b, MINUS_ONE))


def power(base: Expression, exponent: Expression) -> Expression:
    """Raises ZeroDivisionError for 0 to a negative number."""
    if exponent == ZERO or base == ONE:
        return ONE
    if exponent == ONE:
        return base
    if is_number(base):
        folded = _number_power(base, exponent) if is_number(exponent) else None
        return ("power", base, exponent) if folded is None else folded
    if is_integer(exponent):
        if base[0] == "power":
            return power(base[1], multiply(base[2], exponent))
        if base[0] == "product":
            return multiply(power(base[1], exponent), *[power(b, multiply(e, exponent)) for b, e in base[2]])
    return ("power", base, exponent)


def _number_power(base: Fraction, exponent: Fraction):
    """base ** exponent where that is a rational of a sane size, else None."""
    if exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        return base ** int(exponent) if bits * abs(exponent.numerator) <= _MAX_BITS else None
    if exponent.denominator == 2 and base > 0:
        roots = [int(math.sqrt(n)) for n in (base.numerator, base.denominator)]
        if [r * r for r in roots] == [base.numerator, base.denominator]:
            return Fraction(*roots) ** exponent.numerator
    return None


def floor(e: Expression) -> Expression:
    if is_number(e):
        return Fraction(e.numerator // e.denominator)
    if e[0] == "call" and e[1] in ("Floor", "Ceiling"):
        return e
    if e[0] == "sum" and e[1] and is_integer(e[1]):
        return add(e[1], floor(subtract(e, e[1])))
    return ("call", "Floor", (e,))


def ceiling(e: Expression) -> Expression:
    if is_number(e):
        return Fraction(-(-e.numerator // e.denominator))
    if e[0] == "call" and e[1] in ("Floor", "Ceiling"):
        return e
    if e[0] == "sum" and e[1] and is_integer(e[1]):
        return add(e[1], ceiling(subtract(e, e[1])))
    return ("call", "Ceiling", (e,))


def absolute(e: Expression) -> Expression:
    return abs(e) if is_number(e) else ("call", "Abs", (e,))


def modulo(a: Expression, b: Expression) -> Expression:
    """a - b * floor(a / b). Raises ZeroDivisionError for the number 0."""
    if is_number(b) and not b:
        raise ZeroDivisionError("modulo by zero")
    return a % b if is_number(a) and is_number(b) else ("call", "Mod", (a, b))


def extreme(function: str, *arguments: Expression) -> Expression:
    """function: 'Max' or 'Min'."""
    numbers, others = [], []
    for e in arguments:
        for part in e[2] if not is_number(e) and e[:2] == ("call", function) else (e,):
            if is_number(part):
                numbers.append(part)
            elif part not in others:
                others.append(part)
    others.sort(key=lambda e: (e[0] != "symbol", _key(e)))
    if numbers:
        others.insert(0, _SYMMETRIC[function](numbers))
    return others[0] if len(others) == 1 else ("call", function, tuple(others))


def call(function: str, *arguments: Expression) -> Expression:
    """The function of this name in its canonical form. Raises KeyError for an unknown name, TypeError for a
    wrong number of arguments."""
    return _CALLS[function](*arguments)


def _opaque(function: str):
    return lambda e: ("call", function, (e,))


_CALLS = {
    "Floor": floor,
    "Ceiling": ceiling,
    "Abs": absolute,
    "Mod": modulo,
    "Max": lambda a, b: extreme("Max", a, b),
    "Min": lambda a, b: extreme("Min", a, b),
    "Pow": power,
    "Sqrt": lambda e: power(e, HALF),
    "Log": _opaque("Log"),
    "Exp": _opaque("Exp"),
}


def _key(e: Expression) -> bytes:
    return text(e).encode("utf-8")


@lru_cache(maxsize=1 << 14)
def text(e: Expression) -> str:
    """The API's text form (docs/ascir-api.md)."""
    if is_number(e):
        if e.denominator == 1:
            return str(e.numerator)
        return "Rational(%d , %d)" % (e.numerator, e.denominator)
    kind = e[0]
    if kind == "symbol":
        return e[1]
    if kind == "sum":
        return _sum_text(e)
    if kind == "product":
        return _product_text(e)
    if kind == "power":
        return _power_text(e[1], e[2])
    words = [text(a) for a in e[2]]
    line = words[0]
    if len(words) == 1:
        return "%s(%s)" % (e[1], line)
    for word in words[1:]:
        line = "%s(%s, %s)" % (e[1], line, word)
    return line


def _sum_text(e: Expression) -> str:
    added, taken = [], []
    for term, coefficient in e[2]:
        if coefficient < 0:
            taken.append(text(_scaled(term, -coefficient)))
        else:
            added.append(text(_scaled(term, coefficient)))
    if e[1]:
        added.append(text(e[1]))
    taken.sort(key=lambda word: word.encode("utf-8"))
    if not added:
        # A sum must begin with something: the first of the negative terms as it is.
        lead = min(e[2], key=lambda pair: text(_scaled(pair[0], -pair[1])).encode("utf-8"))
        added = [text(_scaled(*lead))]
        taken = taken[1:]
    added.sort(key=lambda word: word.encode("utf-8"))
    return "(%s%s)" % (" + ".join(added), "".join(" - " + word for word in taken))


def _product_text(e: Expression) -> str:
    above, below = [], []
    if e[1] != 1:
        above.append(text(e[1]))
    for base, exponent in e[2]:
        if is_number(exponent) and exponent < 0:
            below.append(text(power(base, -exponent)))
        else:
            above.append(text(power(base, exponent)))
    above.sort(key=lambda word: word.encode("utf-8"))
    below.sort(key=lambda word: word.encode("utf-8"))
    top = " * ".join(above) or "1"
    return "(%s / (%s))" % (top, " * ".join(below)) if below else "(%s)" % top


def _power_text(base: Expression, exponent: Expression) -> str:
    if is_integer(exponent) and 0 < exponent <= 64:
        return "(%s)" % " * ".join([text(base)] * int(exponent))
    if exponent == HALF:
        return "Sqrt(%s)" % text(base)
    return "Pow(%s, %s)" % (text(base), text(exponent))


def symbols_of(e: Expression) -> Tuple[str, ...]:
    """Names of the symbols, sorted."""
    found = set()
    stack = [e]
    while stack:
        part = stack.pop()
        if not isinstance(part, tuple):
            continue
        if part and part[0] == "symbol":
            found.add(part[1])
        else:
            stack.extend(p for p in part if isinstance(p, tuple))
    return tuple(sorted(found))
