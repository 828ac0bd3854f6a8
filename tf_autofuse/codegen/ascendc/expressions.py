"""Sizes as device expressions, and the names of the local variables that hold them.

A kernel computes with int64_t. A count that several statements use becomes a variable of its own, defined at
the outermost level where its symbols are known: before the tile loop, or inside of it.
"""

from typing import Dict, List, NamedTuple, Set, Tuple

from tf_autofuse.symbolic.size import Size, is_static, symbols_of, to_cpp

#: Functions that `to_cpp` calls, as the device source defines them.
_DEVICE_FUNCTIONS = (
    (
        "FloorDiv",
        "(int64_t a, int64_t b) {\n"
        "  return b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);\n}",
    ),
    ("BroadcastSize", "(int64_t a, int64_t b) { return a == 1 ? b : a; }"),
    ("StrideOrZero", "(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }"),
    ("Max", "(int64_t a, int64_t b) { return a > b ? a : b; }"),
    ("Min", "(int64_t a, int64_t b) { return a < b ? a : b; }"),
)


def device_functions(code: str) -> Tuple[str, ...]:
    """Definitions of those size functions that the text calls."""
    called = []
    for name, body in _DEVICE_FUNCTIONS:
        if any(
            code[i - 1 : i] not in (":", "_") and not code[i - 1 : i].isalnum()
            for i in _positions(code, name + "(")
        ):
            called.append("__aicore__ inline int64_t %s%s" % (name, body))
    return tuple(called)


def _positions(text: str, word: str) -> List[int]:
    found, at = [], text.find(word)
    while at >= 0:
        found.append(at)
        at = text.find(word, at + 1)
    return found


def bare(text: str) -> str:
    """The expression without parentheses around the whole of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return bare(text[1:-1]) if i == len(text) - 1 else text
    return text


class Variable(NamedTuple):
    name: str
    value: str


class Expressions:
    """Prints sizes; collects what must be defined for them.

    in_loop: symbols that are known inside of the tile loop only.
    """

    def __init__(self, in_loop: Set[str]):
        self.in_loop = in_loop
        self.used: Set[str] = set()
        self.before: List[Variable] = []
        self.inside: List[Variable] = []
        self._counts: Dict[str, str] = {}

    def text(self, size: Size) -> str:
        """The size as an int64_t expression, in parentheses only where it is not whole without them."""
        self.used |= symbols_of(size)
        return bare(to_cpp(size))

    def factor(self, size: Size) -> str:
        """The size as an operand of * or /."""
        self.used |= symbols_of(size)
        return to_cpp(size)

    def u32(self, size: Size) -> str:
        """The size as a uint32_t expression."""
        return str(size) if is_static(size) else "static_cast<uint32_t>(%s)" % self.text(size)

    def count(self, size: Size) -> str:
        """The size as a uint32_t variable (a literal where it is static)."""
        if is_static(size):
            return str(size)
        text = self.u32(size)
        name = self._counts.get(text)
        if name is None:
            name = self._counts[text] = "n%d" % len(self._counts)
            (self.inside if symbols_of(size) & self.in_loop else self.before).append(Variable(name, text))
        return name
