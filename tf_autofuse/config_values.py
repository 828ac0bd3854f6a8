"""The kinds of values that a setting can have: how a text or a ConfigProto value is read, and what is
allowed.

A kind's `parse(raw, remark)` returns the value or raises BadValue; `remark(text, nearest)` takes what is
wrong with a part of the value when the rest of it is used. On exit the value has the kind's Python type,
whatever came in.
"""
import difflib
import re
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional, Tuple, Union

Raw = Union[str, bytes, bool, int, float]
Remark = Callable[[str, Optional[str]], None]

TRUE_WORDS = ("true", "1", "on", "yes")
FALSE_WORDS = ("false", "0", "off", "no")


class BadValue(ValueError):
    """A value outside of its kind. nearest: an allowed one that may have been meant, or None."""

    def __init__(self, text: str, nearest: Optional[str] = None):
        super().__init__(text)
        self.nearest = nearest


def nearest_of(given: str, allowed: Iterable[str], cutoff: float = 0.6) -> Optional[str]:
    """The allowed word most like `given`, by difflib's ratio on lower-case letters; None where none is like
    it."""
    lower = {}
    for word in allowed:
        lower.setdefault(word.lower(), word)
    found = difflib.get_close_matches(given.lower(), sorted(lower), n=1, cutoff=cutoff)
    return lower[found[0]] if found else None


def meant(nearest: Optional[str]) -> str:
    """For the end of an error text."""
    return " (did you mean %s?)" % nearest if nearest else ""


def as_text(raw: Raw) -> str:
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace").strip()
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float) and raw.is_integer():
        return str(int(raw))
    return str(raw).strip()


@dataclass(frozen=True)
class Kind:
    """Any text. `allowed` says in words what is allowed, for messages and the documents."""

    allowed: str = "text"
    type_name: str = "str"

    def parse(self, raw: Raw, remark: Remark) -> Any:
        return as_text(raw)

    def show(self, value: Any) -> str:
        """The value as a user would write it."""
        return as_text(value) if value not in ("", None) else ""


@dataclass(frozen=True)
class Bool(Kind):
    allowed: str = "true, false (or 1/0, on/off, yes/no)"
    type_name: str = "bool"

    def parse(self, raw: Raw, remark: Remark) -> bool:
        text = as_text(raw).lower()
        if text in TRUE_WORDS:
            return True
        if text in FALSE_WORDS:
            return False
        raise BadValue("it is neither true nor false", nearest_of(text, ("true", "false"), 0.5))


@dataclass(frozen=True)
class Int(Kind):
    """low and high are allowed themselves; high None: no bound. Give them by name."""

    low: int = 0
    high: Optional[int] = None
    type_name: str = "int"
    allowed: str = ""

    def __post_init__(self):
        bound = "an integer from %d" % self.low + ("" if self.high is None else " to %d" % self.high)
        object.__setattr__(self, "allowed", bound)

    def parse(self, raw: Raw, remark: Remark) -> int:
        text = as_text(raw)
        if isinstance(raw, bool) or not re.match(r"^[+-]?\d{1,40}$", text, re.ASCII):
            raise BadValue("it is not an integer")
        value = int(text)
        if value < self.low:
            raise BadValue("it is below %d" % self.low, str(self.low))
        if self.high is not None and value > self.high:
            raise BadValue("it is above %d" % self.high, str(self.high))
        return value


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Bytes(Kind):
    allowed: str = "a number of bytes, with K, M, G or T for powers of 1024"
    type_name: str = "int"

    def parse(self, raw: Raw, remark: Remark) -> int:
        text = as_text(raw)
        match = re.match(r"^(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?$", text.lower(), re.ASCII)
        if isinstance(raw, bool) or not match:
            raise BadValue("it is not a size such as 500M or 2G")
        return (
            int(float(match.group(1)) * _UNITS[match.group(2)])
            if "." in match.group(1)
            else int(match.group(1)) * _UNITS[match.group(2)]
        )

    def show(self, value: int) -> str:
        for unit in "TGMK":
            size = _UNITS[unit.lower()]
            if value and value % size == 0:
                return "%d%s" % (value // size, unit)
        return str(value)


@dataclass(frozen=True)
class Choice(Kind):
    """One of some words, in any case."""

    words: Tuple[str, ...] = ()
    allowed: str = ""

    def __post_init__(self):
        object.__setattr__(self, "allowed", ", ".join(self.words))

    def parse(self, raw: Raw, remark: Remark) -> str:
        text = as_text(raw)
        for word in self.words:
            if word.lower() == text.lower():
                return word
        raise BadValue("it is not one of %s" % self.allowed, nearest_of(text, self.words))


@dataclass(frozen=True)
class Soc(Choice):
    """A SoC's name, with or without its "Ascend"."""

    def parse(self, raw: Raw, remark: Remark) -> str:
        text = as_text(raw)
        for word in self.words:
            if text and word.lower() in (text.lower(), "ascend" + text.lower()):
                return word
        raise BadValue("it is not one of %s" % self.allowed, nearest_of(text, self.words))


@dataclass(frozen=True)
class Words(Kind):
    """A comma list; its order has no meaning. With `words`, others are left out with a remark."""

    words: Tuple[str, ...] = ()
    allowed: str = "a comma list of names"
    type_name: str = "Tuple[str, ...]"

    def __post_init__(self):
        if self.words:
            object.__setattr__(self, "allowed", "a comma list of " + ", ".join(self.words))

    def parse(self, raw: Raw, remark: Remark) -> Tuple[str, ...]:
        found = []
        known = {word.lower(): word for word in self.words}
        for part in as_text(raw).split(","):
            part = part.strip()
            if not part:
                continue
            if self.words and part.lower() not in known:
                remark("%s is none of %s" % (part, ", ".join(self.words)), nearest_of(part, self.words))
                continue
            word = known.get(part.lower(), part)
            if word not in found:
                found.append(word)
        return tuple(found)

    def show(self, value: Tuple[str, ...]) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class Pattern(Kind):
    """A text of a fixed form; '' is allowed and means unset."""

    expression: str = ""

    def parse(self, raw: Raw, remark: Remark) -> str:
        text = as_text(raw)
        if text and not re.match(self.expression, text, re.ASCII):
            raise BadValue("it is not of the form %s" % self.allowed)
        return text
