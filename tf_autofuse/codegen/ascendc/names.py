"""Names that are safe in C++ source, in a file system and in CANN's kernel tables."""

import hashlib
import re

#: CANN appends suffixes of its own; file systems end at 255 bytes.
LONGEST = 80


def entry_symbol(name: str) -> str:
    """A lower-case C identifier for a fused op's name, at most LONGEST letters; different names stay
    different unless they differ only in case or in what is not a letter, digit or underscore."""
    safe = re.sub(r"\W", "_", name, flags=re.ASCII).lower()
    if not safe or safe[0].isdigit():
        safe = "k_" + safe
    if len(safe) <= LONGEST:
        return safe
    return "%s_%s" % (safe[: LONGEST - 9].rstrip("_"), hashlib.sha256(name.encode("utf-8")).hexdigest()[:8])
