"""Facts about run-time dims that a fused graph relies on, as data.

A guard is checked by the generated shape function on every new shape; where it does not hold, the fallback
function gives the result. A guard that is false is therefore never a wrong result.
"""
from typing import Mapping, NamedTuple, Optional, Tuple, Union

from tf_autofuse.symbolic.size import Size, evaluate, is_static, known_equal, substitute, to_text


class GuardFailure(Exception):
    """The run-time dims are not what a fused graph was made for. Not a bug: the fallback gives the result."""


class ValueCheckFailed(GuardFailure):
    """An element of an input is not one that a fused graph computes (an index out of range): as for dims, the
    fallback gives the result, or TF's error."""


GUARD_KINDS = ("eq", "broadcast")


class Guard(NamedTuple):
    """`left <kind> right`; kind: 'eq' or 'broadcast' (equal, or one of them is 1). `why` names what needs
    it."""

    kind: str
    left: Size
    right: Size
    why: str = ""

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the guard holds for the symbol values."""
        a, b = evaluate(self.left, values), evaluate(self.right, values)
        return a == b or (self.kind == "broadcast" and (a == 1 or b == 1))

    def decided(self) -> Optional[bool]:
        """True or False where the forms of both sides settle it, else None."""
        if is_static(self.left) and is_static(self.right):
            return self.holds({})
        if known_equal(self.left, self.right):
            return True
        ones = known_equal(self.left, 1) or known_equal(self.right, 1)
        return True if self.kind == "broadcast" and ones else None

    def substituted(self, values: Mapping[str, Size]) -> "Guard":
        return self._replace(left=substitute(self.left, values), right=substitute(self.right, values))

    def __repr__(self) -> str:
        sign = {"eq": "==", "broadcast": "broadcasts with"}[self.kind]
        return "%s %s %s" % (to_text(self.left), sign, to_text(self.right))


class InputDim(NamedTuple):
    """A symbol that is read off a run-time input: dim `dim` of input number `input` of the kernel."""

    input: int
    dim: int


class SizeVar(NamedTuple):
    """A symbol of an AscGraph. source: where its value comes from at run time: an InputDim, or a Size over
    symbols listed before it. hint: the value first seen, or None."""

    name: str
    source: Union[InputDim, Size]
    hint: Optional[int] = None


def bind(variables: Tuple[SizeVar, ...], dims: Tuple[Tuple[int, ...], ...]) -> Mapping[str, int]:
    """The value of every symbol for the dims of all inputs. Checks nothing: see ir.evaluate.bind_inputs."""
    values = {}
    for v in variables:
        values[v.name] = (
            dims[v.source.input][v.source.dim]
            if isinstance(v.source, InputDim)
            else evaluate(v.source, values)
        )
    return values
