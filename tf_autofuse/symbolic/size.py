"""Sizes: a plain int, or a symbolic integer expression over dims that are known only at run time.

A size is `int` or `SizeExpr`. Plain ints never touch sympy (it is not even imported): the fast path of static
graphs is integer arithmetic. Symbols stand for dims of run-time tensors, so they are integers >= 0.
SizeExpr wraps one sympy expression in canonical form; two sizes that print alike are equal.

Functions beyond + - *: `floor_div`, `ceil_div`, `align_up`, `maximum`, `minimum`, `broadcast_size` (what TF's
broadcasting makes of two dims) and `stride_or_zero` (0 where a dim is 1: the run-time stride of a dim that
may be broadcast). Printing to C++ (`to_cpp`) and evaluation (`evaluate`) agree on every one of them; C++ prints
call the functions of the same name that the generated host source defines.
"""
from typing import Dict, FrozenSet, Iterable, Mapping, Optional, Union

Size = Union[int, "SizeExpr"]

_sympy = None
_functions: Dict[str, type] = {}


def _load():
    """sympy on first need, with our integer functions defined on it."""
    global _sympy
    if _sympy is not None:
        return _sympy
    import sympy

    class floor_div(sympy.Function):
        nargs = 2

        @classmethod
        def eval(cls, a, b):
            if b == 1:
                return a
            if a.is_Integer and b.is_Integer and b != 0:
                return sympy.Integer(int(a) // int(b))
            if a == 0:
                return sympy.Integer(0)
            if b.is_Integer and b > 1 and a.is_Mul and (a.args[0].is_Integer and int(a.args[0]) % int(b) == 0):
                return a / b
            return None

        is_integer = True
        is_nonnegative = True

    class broadcast_size(sympy.Function):
        nargs = 2
        is_integer = True
        is_nonnegative = True

        @classmethod
        def eval(cls, a, b):
            if a == b or b == 1:
                return a
            if a == 1:
                return b
            # A dim known to be other than 1 decides: the partner is equal to it or 1.
            if a.is_Integer:
                return a
            if b.is_Integer:
                return b
            return None if sympy.default_sort_key(a) <= sympy.default_sort_key(b) else cls(b, a)

    class stride_or_zero(sympy.Function):
        nargs = 2
        is_integer = True
        is_nonnegative = True

        @classmethod
        def eval(cls, dim, stride):
            if dim.is_Integer:
                return sympy.Integer(0) if dim == 1 else stride
            return None

    for f in (floor_div, broadcast_size, stride_or_zero):
        _functions[f.__name__] = f
    _sympy = sympy
    return sympy


class SizeExpr:
    """A symbolic size. Immutable, hashable; arithmetic with ints and other sizes gives a Size."""

    __slots__ = ("expr", "_hash")

    def __init__(self, expr):
        self.expr = expr
        self._hash = hash(expr)

    def __add__(self, other):
        return _wrap(self.expr + _raw(other))

    __radd__ = __add__

    def __sub__(self, other):
        return _wrap(self.expr - _raw(other))

    def __rsub__(self, other):
        return _wrap(_raw(other) - self.expr)

    def __mul__(self, other):
        return _wrap(self.expr * _raw(other))

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return floor_div(self, other)

    def __eq__(self, other):
        if isinstance(other, SizeExpr):
            return self.expr == other.expr
        return False

    def __hash__(self):
        return self._hash

    def __bool__(self):
        raise TypeError("the truth of a symbolic size is unknown; compare with known_equal() or evaluate() it")

    def __repr__(self):
        return to_text(self)


def _raw(size):
    return size.expr if isinstance(size, SizeExpr) else _load().Integer(size)


def _wrap(expr) -> Size:
    return int(expr) if expr.is_Integer else SizeExpr(expr)


def symbol(name: str) -> SizeExpr:
    """The symbol `name`: an integer >= 0. Symbols of the same name are equal."""
    return SizeExpr(_load().Symbol(name, integer=True, nonnegative=True))


def is_static(size: Size) -> bool:
    return not isinstance(size, SizeExpr)


def floor_div(a: Size, b: Size) -> Size:
    if is_static(a) and is_static(b):
        return a // b
    _load()
    return _wrap(_functions["floor_div"](_raw(a), _raw(b)))


def ceil_div(a: Size, b: Size) -> Size:
    return floor_div(a + b - 1, b)


def align_up(a: Size, multiple: int) -> Size:
    """The least multiple of `multiple` that is >= a."""
    return a if multiple == 1 else ceil_div(a, multiple) * multiple


def maximum(a: Size, b: Size) -> Size:
    if is_static(a) and is_static(b):
        return max(a, b)
    return _wrap(_load().Max(_raw(a), _raw(b)))


def minimum(a: Size, b: Size) -> Size:
    if is_static(a) and is_static(b):
        return min(a, b)
    return _wrap(_load().Min(_raw(a), _raw(b)))


def broadcast_size(a: Size, b: Size) -> Size:
    """The dim that TF's broadcasting makes of a and b, given that they are compatible (checked at run time)."""
    if is_static(a) and is_static(b):
        return b if a == 1 else a
    _load()
    return _wrap(_functions["broadcast_size"](_raw(a), _raw(b)))


def stride_or_zero(dim: Size, stride: Size) -> Size:
    """The stride of a dim that may be 1 at run time and is then read again for every index."""
    if is_static(dim):
        return 0 if dim == 1 else stride
    _load()
    return _wrap(_functions["stride_or_zero"](_raw(dim), _raw(stride)))


def may_be_broadcast(stride: Size) -> bool:
    """Whether the stride is decided at run time (contains a stride_or_zero)."""
    return isinstance(stride, SizeExpr) and stride.expr.has(_functions["stride_or_zero"])


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for s in sizes:
        result = result * s
    return result


def known_equal(a: Size, b: Size) -> bool:
    """Equal for every value of the symbols, as far as the canonical form shows it. False means: not known."""
    if is_static(a) or is_static(b):
        return is_static(a) and is_static(b) and a == b
    return a.expr == b.expr or (a.expr - b.expr).expand() == 0


def exact_quotient(a: Size, b: Size) -> Optional[Size]:
    """a / b where it is a whole size for every value of the symbols, else None."""
    if is_static(a) and is_static(b):
        return a // b if b != 0 and a % b == 0 else None
    if is_static(b) and b == 0:
        return None
    q = _load().cancel(_raw(a) / _raw(b)) if not _raw(a).has(*_functions.values()) else _raw(a) / _raw(b)
    numerator, denominator = q.as_numer_denom()
    return _wrap(q) if denominator == 1 and numerator.is_integer else None


def symbols_of(size: Size) -> FrozenSet[str]:
    return frozenset() if is_static(size) else frozenset(s.name for s in size.expr.free_symbols)


def substitute(size: Size, values: Mapping[str, Size]) -> Size:
    """`size` with the named symbols replaced by sizes."""
    if is_static(size):
        return size
    pairs = {s: _raw(values[s.name]) for s in size.expr.free_symbols if s.name in values}
    return _wrap(size.expr.subs(pairs, simultaneous=True)) if pairs else size


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The value for the given symbol values. Raises KeyError that names a missing symbol."""
    if is_static(size):
        return size
    return int(_evaluate(size.expr, values))


def _evaluate(e, values):
    if e.is_Integer:
        return int(e)
    if e.is_Symbol:
        return values[e.name]
    args = [_evaluate(a, values) if not a.is_Rational else a for a in e.args]
    name = type(e).__name__
    if name == "floor_div":
        return args[0] // args[1] if args[1] else 0
    if name == "broadcast_size":
        return args[1] if args[0] == 1 else args[0]
    if name == "stride_or_zero":
        return 0 if args[0] == 1 else args[1]
    if name == "Max":
        return max(args)
    if name == "Min":
        return min(args)
    if e.is_Add:
        return sum(args)
    if e.is_Mul:
        result = 1
        for a in args:
            result = result * a
        return result
    if e.is_Pow:
        return args[0] ** args[1]
    raise TypeError("size expression with an unknown function: %s" % name)


def to_text(size: Size) -> str:
    """Readable, parseable by `parse`, the same on every run."""
    return str(size) if is_static(size) else _load().sstr(size.expr, order="lex")


def parse(text: str) -> Size:
    """The size that `to_text` printed. Raises ValueError for anything else."""
    text = text.strip()
    if text.lstrip("-").isdigit():
        return int(text)
    sympy = _load()
    import re

    names = set(re.findall(r"[A-Za-z_]\w*", text)) - set(_functions) - {"Max", "Min"}
    scope = {n: sympy.Symbol(n, integer=True, nonnegative=True) for n in names}
    scope.update(_functions)
    if re.search(r"[^\w\s+\-*/(),]", text):
        raise ValueError("not a size expression: %r" % text)
    try:
        return _wrap(sympy.sympify(text, locals=scope))
    except (sympy.SympifyError, TypeError, SyntaxError) as error:
        raise ValueError("not a size expression: %r (%s)" % (text, error))


def to_cpp(size: Size, names: Optional[Mapping[str, str]] = None) -> str:
    """The size as a C++ int64_t expression; `names` maps symbols to C++ lvalues (default: the symbol's name)."""
    if is_static(size):
        return str(size)
    return _cpp(size.expr, names or {})


def _cpp(e, names) -> str:
    if e.is_Integer:
        return str(int(e))
    if e.is_Symbol:
        return names.get(e.name, e.name)
    name = type(e).__name__
    ordered = sorted(e.args, key=_load().default_sort_key) if e.is_Add or e.is_Mul else e.args
    if e.is_Pow:
        base, power = e.args
        if not (power.is_Integer and power > 0):
            raise TypeError("a size with a power that is no positive integer: %s" % e)
        return "(" + " * ".join([_cpp(base, names)] * int(power)) + ")"
    args = [_cpp(a, names) for a in ordered]
    if e.is_Add:
        return "(" + " + ".join(args) + ")"
    if e.is_Mul:
        return "(" + " * ".join(args) + ")"
    function = {"floor_div": "FloorDiv", "broadcast_size": "BroadcastSize", "stride_or_zero": "StrideOrZero",
                "Max": "Max", "Min": "Min"}[name]
    text = args[0]
    for a in args[1:]:
        text = "%s(%s, %s)" % (function, text, a)
    return text


#: Definitions of the functions that `to_cpp` calls; the generated host source begins with them.
CPP_PRELUDE = """\
static inline int64_t FloorDiv(int64_t a, int64_t b) { return b == 0 ? 0 : (a >= 0 ? a / b : -((b - 1 - a) / b)); }
static inline int64_t BroadcastSize(int64_t a, int64_t b) { return a == 1 ? b : a; }
static inline int64_t StrideOrZero(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }
static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
"""
