"""Real-valued formulas over sizes: one text that Python and the generated C++ both compute, bit for bit.

A formula is built from numbers and sizes with + * / max and `choose`. It prints fully parenthesized, so that
both languages round in the same order; Python runs the very text that C++ does. Sizes inside are exact 64-bit
integers until D() turns them into doubles. Static parts are folded when the formula is built, never later.
"""
from typing import Any, Callable, Dict, NamedTuple, Sequence, Union

from tf_autofuse.symbolic.size import Size, is_static, to_cpp


class Formula(NamedTuple):
    """kind: 'number', 'size', '+', '*', '/', 'larger' or 'choose' (args: x, bound, below, otherwise)."""

    kind: str
    args: tuple

    def __add__(self, other):
        return _folded("+", self, of(other), 0.0, lambda a, b: a + b)

    def __mul__(self, other):
        return _folded("*", self, of(other), 1.0, lambda a, b: a * b)

    def __truediv__(self, other):
        other = of(other)
        if self.kind == other.kind == "number":
            return of(self.args[0] / other.args[0])
        return Formula("/", (self, other))


Value = Union[Formula, float, Size]


def of(value: Value) -> Formula:
    """A number or a size as a formula."""
    if isinstance(value, Formula):
        return value
    return Formula("number", (float(value),)) if isinstance(value, float) or is_static(value) else Formula(
        "size", (value,))


def _folded(kind: str, a: Formula, b: Formula, neutral: float,
            compute: Callable[[float, float], float]) -> Formula:
    if a.kind == b.kind == "number":
        return of(compute(a.args[0], b.args[0]))
    for one, other in ((a, b), (b, a)):
        if one.kind == "number" and one.args[0] == neutral:
            return other
    return Formula(kind, (a, b))


def larger(a: Value, b: Value) -> Formula:
    a, b = of(a), of(b)
    if a.kind == b.kind == "number":
        return max(a, b, key=lambda n: n.args[0])
    return Formula("larger", (a, b))


def choose(x: Value, bound: Value, below: Value, otherwise: Value) -> Formula:
    """below where x < bound, else otherwise. Both are computed, so both must have a value wherever either is
    taken."""
    x, bound = of(x), of(bound)
    if x.kind == bound.kind == "number":
        return of(below if x.args[0] < bound.args[0] else otherwise)
    return Formula("choose", (x, bound, of(below), of(otherwise)))


def total(values: Sequence[Value]) -> Formula:
    """The sum, left to right; 0.0 for none."""
    result = of(0.0)
    for v in values:
        result = result + v
    return result


def text(formula: Formula) -> str:
    """The formula as an expression of C++ and of Python, given the functions of PRELUDE or SCOPE."""
    if formula.kind == "number":
        return repr(formula.args[0])
    if formula.kind == "size":
        return "D(%s)" % to_cpp(formula.args[0]).strip()
    args = tuple(text(a) for a in formula.args)
    if formula.kind in ("larger", "choose"):
        return "%s(%s)" % (formula.kind.capitalize(), ", ".join(args))
    return "(%s %s %s)" % (args[0], formula.kind, args[1])


#: C++ definitions of what the printed text calls, beside symbolic.size.CPP_PRELUDE.
PRELUDE = """\
static inline double D(int64_t size) { return static_cast<double>(size); }
static inline double Larger(double a, double b) { return a < b ? b : a; }
static inline double Choose(double x, double bound, double below, double otherwise) {
  return x < bound ? below : otherwise;
}
"""

#: The same for Python, with the size functions of symbolic.size.CPP_PRELUDE.
SCOPE: Dict[str, Any] = {
    "__builtins__": {}, "D": float, "Larger": lambda a, b: b if a < b else a,
    "Choose": lambda x, bound, below, otherwise: below if x < bound else otherwise,
    "FloorDiv": lambda a, b: a // b if b else 0, "Max": max, "Min": min,
    "BroadcastSize": lambda a, b: b if a == 1 else a, "StrideOrZero": lambda d, s: 0 if d == 1 else s,
}


def compiled(expression: str, parameters: Sequence[str]) -> Callable:
    """A Python function of the named symbols that computes a printed size or formula. The text is our own
    print of sizes, and nothing but SCOPE is in reach of it."""
    return eval("lambda %s: %s" % (", ".join(parameters), expression), dict(SCOPE))
