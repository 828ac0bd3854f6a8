"""What went wrong in building or loading, as a value.

Nothing in this package raises for a missing compiler, a full disk or a damaged file: the caller leaves the
region as TensorFlow has it and shows `reason` and `remedy`. Only a caller's own mistake (a wrong type, a name
used twice) raises.
"""

from typing import NamedTuple


class Problem(NamedTuple):
    """reason: what happened, a sentence. remedy: what the user can do about it. log: a compiler's own
    words."""

    reason: str
    remedy: str
    log: str = ""

    def __str__(self) -> str:
        return "%s. %s." % (self.reason.rstrip("."), self.remedy.rstrip("."))
