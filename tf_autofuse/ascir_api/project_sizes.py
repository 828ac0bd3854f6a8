"""From the API's rational expressions to this project's Sizes.

On entry any expression.Expression; on exit a Size with the same value for every value >= 0 of the symbols,
or a ConversionError that names what no Size can say (roots, logarithms, a quotient that is no integer)."""

import re
from typing import Dict, Mapping, Tuple

from tf_autofuse.ascir_api import expression as ex
from tf_autofuse.symbolic.size import (
    Size,
    exact_quotient,
    floor_div,
    is_static,
    known_equal,
    maximum,
    minimum,
    symbol,
)

_MAX_POWER = 64
#: Symbols of these names are common and no name in a generated kernel.
_PLAIN = re.compile(r"s\d+\Z", re.ASCII)
_PREFIX = "size_"


class ConversionError(Exception):
    """A graph of the API that has no meaning in this compiler; the text names the node and the reason."""


class SizeMaker:
    """given: values of symbols. names: the API's symbol -> this project's name, filled as symbols are met."""

    def __init__(self, given: Mapping[str, int]):
        self.given = dict(given)
        self.names: Dict[str, str] = {}

    def size(self, e: ex.Expression) -> Size:
        numerator, denominator = self._fraction(e)
        if is_static(denominator) and denominator == 1:
            return numerator
        quotient = exact_quotient(numerator, denominator)
        if quotient is None:
            raise ConversionError("the size %s is no integer for every value of its symbols" % ex.text(e))
        return quotient

    def _symbol(self, name: str) -> Size:
        if name in self.given:
            return int(self.given[name])
        if name not in self.names:
            self.names[name] = self._safe(name)
        return symbol(self.names[name])

    def _safe(self, name: str) -> str:
        """A name that neither generated code nor another symbol has: s<n> stays, others get a prefix."""
        safe = name if _PLAIN.match(name) else _PREFIX + re.sub(r"\W", "_", name, flags=re.ASCII)
        taken, number = set(self.names.values()), 0
        candidate = safe
        while candidate in taken:
            number += 1
            candidate = "%s_%d" % (safe, number)
        return candidate

    def _fraction(self, e: ex.Expression) -> Tuple[Size, Size]:
        """(numerator, denominator); the denominator is not 0."""
        if ex.is_number(e):
            return e.numerator, e.denominator
        kind = e[0]
        if kind == "symbol":
            return self._symbol(e[1]), 1
        if kind == "sum":
            total: Tuple[Size, Size] = (e[1].numerator, e[1].denominator)
            for term, coefficient in e[2]:
                n, d = self._fraction(term)
                total = _added(total, (n * coefficient.numerator, d * coefficient.denominator))
            return total
        if kind == "product":
            numerator, denominator = e[1].numerator, e[1].denominator
            for base, exponent in e[2]:
                n, d = self._power(base, exponent)
                numerator, denominator = numerator * n, denominator * d
            return numerator, denominator
        if kind == "power":
            return self._power(e[1], e[2])
        return self._call(e), 1

    def _power(self, base: ex.Expression, exponent: ex.Expression) -> Tuple[Size, Size]:
        if not ex.is_integer(exponent) or abs(exponent) > _MAX_POWER:
            raise ConversionError("the size %s is no polynomial" % ex.text(ex.power(base, exponent)))
        n, d = self._fraction(base)
        top: Size = 1
        bottom: Size = 1
        for _ in range(abs(int(exponent))):
            top, bottom = top * n, bottom * d
        return (top, bottom) if exponent > 0 else (bottom, top)

    def _call(self, e: ex.Expression) -> Size:
        name, arguments = e[1], e[2]
        if name in ("Floor", "Ceiling"):
            n, d = self._fraction(arguments[0])
            return floor_div(n, d) if name == "Floor" else floor_div(n + d - 1, d)
        if name == "Mod":
            (n, d), (m, f) = map(self._fraction, arguments)
            if not (known_equal(d, 1) and known_equal(f, 1)):
                raise ConversionError("the size %s is no integer" % ex.text(e))
            return n - m * floor_div(n, m)
        if name in ("Max", "Min"):
            choose = maximum if name == "Max" else minimum
            sizes = [self.size(a) for a in arguments]
            result = sizes[0]
            for s in sizes[1:]:
                result = choose(result, s)
            return result
        raise ConversionError("the size %s has no integer meaning" % ex.text(e))


def api_name(symbol_name: str) -> str:
    """What a symbol of ours was called in the API, as far as an identifier can say it."""
    return symbol_name[len(_PREFIX) :] if symbol_name.startswith(_PREFIX) else symbol_name


def _added(a: Tuple[Size, Size], b: Tuple[Size, Size]) -> Tuple[Size, Size]:
    if known_equal(a[1], b[1]):
        return a[0] + b[0], a[1]
    return a[0] * b[1] + b[0] * a[1], a[1] * b[1]
