"""C statements with their indentation, and where each innermost loop begins."""
from typing import List, Sequence

from tf_autofuse.codegen.ascendc.body import comment


class Lines:
    """Appends lines; `indent` is the current depth in blocks."""

    #: Marks the loops that must be vectorized; build looks for the lines that hold it.
    MARK = "/* vector */"

    def __init__(self, indent: int = 0):
        self.lines: List[str] = []
        self.indent = indent

    def add(self, text: str, note: str = "") -> None:
        line = "  " * self.indent + text
        if note:
            line += "  " + comment(note)
        self.lines.append(line)

    def open(self, text: str) -> None:
        self.add((text + " {").lstrip())
        self.indent += 1

    def close(self, count: int = 1) -> None:
        for _ in range(count):
            self.indent -= 1
            self.add("}")

    def vector_loop(self, index: str, count: str, type_: str = "int64_t") -> None:
        """Opens the loop index = 0 .. count - 1, whose iterations do not depend on each other."""
        self.lines.append("#pragma GCC ivdep")
        self.open("for (%s %s = 0; %s < %s; ++%s) %s" % (type_, index, index, count, index, self.MARK))

    def extend(self, lines: Sequence[str]) -> None:
        self.lines.extend("  " * self.indent + line for line in lines)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
