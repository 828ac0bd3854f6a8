"""ascir.SizeExpr, and the functions Max, Min and Mod of module ascir.

Holds: a SizeExpr never changes; its text and equality are those of expression.py's canonical form.
"""

from fractions import Fraction

from tf_autofuse.ascir_api import expression as ex

_WRONG_TYPE = "Only support type of SizeExpr or long"


class SizeExpr:
    """A size: a number or an expression over named symbols. SizeExpr() is 1."""

    __slots__ = ("_e",)
    __hash__ = None

    def __init__(self, value=1):
        e = expression_of(value)
        if e is None:
            raise TypeError(_WRONG_TYPE)
        self._e = e

    @property
    def expression(self) -> str:
        return ex.text(self._e)

    def __eq__(self, other):
        e = expression_of(other)
        return NotImplemented if e is None else self._e == e

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __neg__(self):
        return wrap(ex.negate(self._e))

    def __add__(self, other):
        return _operate("add", ex.add, self, other)

    def __radd__(self, other):
        return _operate("add", ex.add, other, self)

    def __sub__(self, other):
        return _operate("sub", ex.subtract, self, other)

    def __rsub__(self, other):
        return _operate("sub", ex.subtract, other, self)

    def __mul__(self, other):
        return _operate("mul", ex.multiply, self, other)

    def __rmul__(self, other):
        return _operate("mul", ex.multiply, other, self)

    def __truediv__(self, other):
        return _operate("div", ex.divide, self, other)

    def __rtruediv__(self, other):
        return _operate("div", ex.divide, other, self)

    def __floordiv__(self, other):
        return _operate("floor division", _floor_divide, self, other)

    def __rfloordiv__(self, other):
        return _operate("floor division", _floor_divide, other, self)

    def __mod__(self, other):
        return _operate("remainder", ex.modulo, self, other)

    def __rmod__(self, other):
        return _operate("remainder", ex.modulo, other, self)

    def __pow__(self, other, modulus=None):
        return _operate("pow", ex.power, self, other)

    def __rpow__(self, other, modulus=None):
        return _operate("pow", ex.power, other, self)


def _floor_divide(a, b):
    return ex.floor(ex.divide(a, b))


def expression_of(value):
    """The expression of a SizeExpr or int, None for anything else."""
    if isinstance(value, SizeExpr):
        return value._e
    return Fraction(int(value)) if isinstance(value, int) else None


def wrap(e) -> SizeExpr:
    size = SizeExpr.__new__(SizeExpr)
    size._e = e
    return size


def size_of(value, error: Exception) -> SizeExpr:
    """`value`, a SizeExpr or int, as a SizeExpr. Raises `error` for anything else."""
    e = expression_of(value)
    if e is None:
        raise error
    return wrap(e)


def wrong_type() -> TypeError:
    """What an attribute or argument that takes a size says to anything else."""
    return TypeError(_WRONG_TYPE)


def _operate(name, function, left, right) -> SizeExpr:
    operands = []
    for side, value in (("left", left), ("right", right)):
        e = expression_of(value)
        if e is None:
            raise TypeError("%s operand of %s is not a valid SizeExpr" % (side, name))
        operands.append(e)
    return wrap(function(*operands))


def _two(name, arguments):
    if len(arguments) != 2:
        raise TypeError("%s takes exactly two arguments (%d given)" % (name, len(arguments)))
    return arguments


def Max(*arguments) -> SizeExpr:
    """The greater of two sizes."""
    return _operate("binary operation", lambda a, b: ex.extreme("Max", a, b), *_two("Max", arguments))


def Min(*arguments) -> SizeExpr:
    """The lesser of two sizes."""
    return _operate("binary operation", lambda a, b: ex.extreme("Min", a, b), *_two("Min", arguments))


def Mod(*arguments) -> SizeExpr:
    """The first size modulo the second."""
    return _operate("binary operation", ex.modulo, *_two("Mod", arguments))
