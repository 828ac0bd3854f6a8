"""Sizes: a plain int, or a symbolic integer expression over dims that are known only at run time.

A size is `int` or `SizeExpr`. Plain ints never touch sympy (it is not even imported): the fast path of static
graphs is integer arithmetic. Symbols stand for dims of run-time tensors, so they are integers >= 0.
SizeExpr wraps one sympy expression in canonical form; two sizes that print alike are equal.

Functions beyond + - *: `floor_div`, `ceil_div`, `align_up`, `maximum`, `minimum`, `broadcast_size` (what TF's
broadcasting makes of two dims) and `stride_or_zero` (0 where a dim is 1: the run-time stride of a dim that
may be broadcast). Printing to C++ (`to_cpp`) and evaluation (`evaluate`) agree on every one of them; C++
prints call the functions of the same name that the generated host source defines.
"""
import keyword
import re
from functools import lru_cache
from typing import FrozenSet, Iterable, Mapping, Optional, Union

Size = Union[int, "SizeExpr"]

_functions = None


def _load():
    """The sympy side, imported on the first symbol."""
    global _functions
    if _functions is None:
        from tf_autofuse.symbolic import functions

        _functions = functions
    return _functions


class SizeExpr:
    """A symbolic size. Immutable, hashable; arithmetic with ints and other sizes gives a Size."""

    __slots__ = ("expr", "_hash", "_evaluator")

    def __init__(self, expr):
        self.expr = expr
        self._hash = hash(expr)
        self._evaluator = None

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

    def __rfloordiv__(self, other):
        return floor_div(other, self)

    def __eq__(self, other):
        if isinstance(other, SizeExpr):
            return self.expr == other.expr
        return False

    def __hash__(self):
        return self._hash

    def __bool__(self):
        raise TypeError(
            "the truth of a symbolic size is unknown; compare with known_equal() or evaluate() it"
        )

    def __repr__(self):
        return to_text(self)

    def __reduce__(self):
        return parse, (to_text(self),)


def _raw(size):
    if isinstance(size, SizeExpr):
        return size.expr
    return _load().Integer(size)


def _wrap(expr) -> Size:
    return int(expr) if expr.is_Integer else SizeExpr(expr)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset(
    (
        "floor_div",
        "Max",
        "Min",
        "broadcast_size",
        "stride_or_zero",
        "FloorDiv",
        "BroadcastSize",
        "StrideOrZero",
    )
)


@lru_cache(maxsize=1 << 12)
def symbol(name: str) -> SizeExpr:
    """The symbol `name`: an integer >= 0. Symbols of the same name are equal. Raises ValueError for a name
    that is no identifier or that a function of sizes has."""
    if not _NAME.match(name) or name in _RESERVED or keyword.iskeyword(name):
        raise ValueError("not a name for a size symbol: %r" % (name,))
    return SizeExpr(_load().new_symbol(name))


def is_static(size: Size) -> bool:
    return not isinstance(size, SizeExpr)


def is_symbol(size: Size) -> bool:
    """Whether the size is one symbol and no more."""
    return not is_static(size) and symbols_of(size) == {str(size)}


def floor_div(a: Size, b: Size) -> Size:
    """floor(a / b); 0 where b is 0, as at run time."""
    if is_static(a) and is_static(b):
        return a // b if b else 0
    return _wrap(_load().floor_div(_raw(a), _raw(b)))


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
    """The dim that TF's broadcasting makes of a and b, given that they are compatible. A static dim other
    than 1 decides (`broadcast_size(s0, 4)` is 4): whoever calls this adds the 'broadcast' guard that checks
    it."""
    if is_static(a) and is_static(b):
        return b if a == 1 else a
    return _wrap(_load().broadcast_size(_raw(a), _raw(b)))


def stride_or_zero(dim: Size, stride: Size) -> Size:
    """The stride of a dim that may be 1 at run time and is then read again for every index."""
    if is_static(dim):
        return 0 if dim == 1 else stride
    return _wrap(_load().stride_or_zero(_raw(dim), _raw(stride)))


def may_be_broadcast(stride: Size) -> bool:
    """Whether the stride is decided at run time (contains a stride_or_zero)."""
    return isinstance(stride, SizeExpr) and stride.expr.has(_load().stride_or_zero)


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for s in sizes:
        result = result * s
    return result


def known_equal(a: Size, b: Size) -> bool:
    """Equal for every value of the symbols, as far as the canonical form shows it. False means: not known."""
    if is_static(a) or is_static(b):
        return is_static(a) and is_static(b) and a == b
    return a.expr == b.expr or _load().always_equal(a.expr, b.expr)


def known_nonnegative(size: Size) -> bool:
    """Whether size >= 0 follows from its form. False means: not known, or known not to be."""
    return size >= 0 if is_static(size) else _load().is_nonnegative(size.expr)


def exact_quotient(a: Size, b: Size) -> Optional[Size]:
    """The size q with q * b == a for every value of the symbols, or None where there is none or it is not
    found.

    At values where b is 0 (and so a) the identity holds but says nothing about q: who divides a tensor's dims
    must refuse or guard b == 0 where TF would (Reshape with -1 of an empty tensor)."""
    if is_static(b):
        if b == 0:
            return None
        if is_static(a):
            return a // b if a % b == 0 else None
    q = _load().exact_quotient(_raw(a), _raw(b))
    return None if q is None else _wrap(q)


def broadcast_operands(size: Size) -> Iterable[FrozenSet[Size]]:
    """The sets of dims that `size` takes for mutually compatible: one for each broadcast_size in it."""
    if is_static(size):
        return ()
    found = size.expr.atoms(_load().broadcast_size)
    return tuple(frozenset(_wrap(a) for a in f.args) for f in sorted(found, key=_load().text))


def symbols_of(size: Size) -> FrozenSet[str]:
    return frozenset() if is_static(size) else frozenset(s.name for s in size.expr.free_symbols)


def substitute(size: Size, values: Mapping[str, Size]) -> Size:
    """`size` with the named symbols replaced by sizes, all at once."""
    if is_static(size):
        return size
    pairs = {s: _raw(values[s.name]) for s in size.expr.free_symbols if s.name in values}
    return _wrap(size.expr.xreplace(pairs)) if pairs else size


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The value for the given symbol values. Raises KeyError that names a missing symbol."""
    if is_static(size):
        return size
    if size._evaluator is None:
        size._evaluator = _load().evaluator(size.expr)
    return int(size._evaluator(values))


def to_text(size: Size) -> str:
    """Readable, parseable by `parse`, the same on every run."""
    return str(size) if is_static(size) else _load().text(size.expr)


def to_cpp(size: Size, names: Optional[Mapping[str, str]] = None) -> str:
    """The size as a C++ int64_t expression; `names` maps symbols to int64_t lvalues (default: the symbol's
    name). The source that holds it begins with CPP_PRELUDE."""
    return str(size) if is_static(size) else _load().cpp(size.expr, names or {})


#: Definitions of the functions that `to_cpp` prints call; the generated host source begins with them.
CPP_PRELUDE = """\
static inline int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
static inline int64_t BroadcastSize(int64_t a, int64_t b) { return a == 1 ? b : a; }
static inline int64_t StrideOrZero(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }
static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
"""


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(\*\*|[-+*(),]))", re.ASCII)
#: Nesting that the parser follows; beyond it the text is no size of ours.
_MAX_DEPTH = 150
_MAX_POWER = 64


class _Parser:
    """Recursive descent over: sum ::= ['-'] product (('+'|'-') product)*; product ::= power ('*' power)*;
    power ::= atom ['**' integer]; atom ::= integer | '-' atom | name | function '(' sum (',' sum)* ')' | '('
    sum ')'.
    """

    def __init__(self, text: str):
        text = text.strip()
        self.text, self.tokens, self.at, self.depth = text, [], 0, 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise self.error("at %r" % text[position : position + 20])
            self.tokens.append(match.group().strip())
            position = match.end()
        self.tokens.append("")

    def error(self, what: str) -> ValueError:
        return ValueError("not a size expression: %r (%s)" % (self.text[:200], what))

    def take(self, *wanted: str) -> str:
        token = self.tokens[self.at]
        if token not in wanted:
            return ""
        self.at += 1
        return token

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.error("expected %r, found %r" % (wanted, self.tokens[self.at] or "the end"))

    def sum(self) -> Size:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error("nested too deeply")
        total = -1 * self.product() if self.take("-") else self.product()
        while True:
            sign = self.take("+", "-")
            if not sign:
                self.depth -= 1
                return total
            total = total + self.product() if sign == "+" else total - self.product()

    def product(self) -> Size:
        total = self.power()
        while self.take("*"):
            total = total * self.power()
        return total

    def power(self) -> Size:
        base = self.atom()
        if not self.take("**"):
            return base
        token = self.tokens[self.at]
        if not token.isdigit() or not 1 <= int(token) <= _MAX_POWER:
            raise self.error("a power must be an integer from 1 to %d" % _MAX_POWER)
        self.at += 1
        return product([base] * int(token))

    def atom(self) -> Size:
        token = self.tokens[self.at]
        if token and token[0].isdigit():
            self.at += 1
            return int(token)
        if self.take("("):
            value = self.sum()
            self.expect(")")
            return value
        if not token or not _NAME.match(token):
            raise self.error("unexpected %r" % (token or "end"))
        self.at += 1
        if not self.take("("):
            return symbol(token)
        values = [self.sum()]
        while self.take(","):
            values.append(self.sum())
        self.expect(")")
        return self.call(token, values)

    def call(self, name: str, values) -> Size:
        function = _CALLS.get(name)
        if function is None:
            raise self.error("unknown function %s" % name)
        if len(values) < 2 or (len(values) > 2 and function in (floor_div, stride_or_zero)):
            raise self.error("%s does not take %d arguments" % (name, len(values)))
        result = values[0]
        for v in values[1:]:
            result = function(result, v)
        return result


_CALLS = {
    "floor_div": floor_div,
    "Max": maximum,
    "Min": minimum,
    "broadcast_size": broadcast_size,
    "stride_or_zero": stride_or_zero,
}


def parse(text: str) -> Size:
    """The size that `to_text` printed. Raises ValueError for anything else. Text is data: nothing is
    executed."""
    parser = _Parser(text)
    value = parser.sum()
    if parser.tokens[parser.at]:
        raise parser.error("unexpected %r" % parser.tokens[parser.at])
    return value
