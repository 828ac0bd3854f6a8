"""Long statements over several lines: broken behind commas, the outermost ones first, never inside of a
comment."""

from typing import List, Tuple

WIDTH = 110
#: Continuation lines stand this much further right than their statement.
INDENT = 4

_OPEN, _CLOSE = "([{", ")]}"


def wrapped(line: str, indent: int) -> Tuple[str, ...]:
    """The statement as lines of at most WIDTH - indent columns, as far as commas allow; the first is not
    indented."""
    room = WIDTH - indent
    if len(line) <= room or line.lstrip().startswith("//"):
        return (line,)
    lines: List[str] = []
    current = ""
    for piece in _pieces(line):
        continued = " " * INDENT + piece
        if not current:
            current = piece
        elif len(current) + 1 + len(piece) <= room:
            current += " " + piece
        else:
            lines.append(current)
            current = continued
        if len(current) > room:
            *full, current = _fill(_pieces(current.strip()), room, 2 * INDENT if lines else INDENT)
            lines.extend([" " * INDENT + full[0]] + full[1:] if lines and full else full)
    return tuple(lines + [current])


def _fill(pieces: List[str], room: int, indent: int) -> List[str]:
    lines, current = [], pieces[0]
    for piece in pieces[1:]:
        if len(current) + 1 + len(piece) <= room:
            current += " " + piece
        else:
            lines.append(current)
            current = " " * indent + piece
    return lines + [current]


def _pieces(line: str) -> List[str]:
    """The text cut behind every comma that stands in exactly one bracket, angle brackets not counted."""
    pieces, depth, start = [], 0, 0
    for i, c in enumerate(line):
        depth += (c in _OPEN) - (c in _CLOSE)
        if c == "," and depth == 1 and line[i + 1 : i + 2] == " ":
            pieces.append(line[start : i + 1])
            start = i + 2
    return pieces + [line[start:]]
