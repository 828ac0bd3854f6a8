"""Guards and the binding of symbols to run-time dims."""
import pytest

from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar, bind
from tf_autofuse.symbolic.size import broadcast_size, symbol

S0, S1 = symbol("s0"), symbol("s1")


@pytest.mark.parametrize(
    "kind, left, right, expected",
    [
        ("eq", 3, 3, True),
        ("eq", 1, 3, False),
        ("broadcast", 1, 3, True),
        ("broadcast", 3, 1, True),
        ("broadcast", 2, 3, False),
        ("broadcast", 0, 1, True),
        ("broadcast", 0, 2, False),
    ],
)
def test_guards_hold(kind, left, right, expected):
    guard = Guard(kind, S0, S1)
    assert guard.holds({"s0": left, "s1": right}) is expected
    assert guard.decided() is None
    assert guard.substituted({"s0": left, "s1": right}).decided() is expected


def test_guards_that_hold_by_form():
    assert Guard("eq", S0 * S1, S1 * S0).decided() is True
    assert Guard("broadcast", S0, 1).decided() is True and Guard("broadcast", 1, S0).decided() is True
    assert Guard("eq", S0, 1).decided() is None
    assert Guard("broadcast", S0, 4).decided() is None


def test_guards_read_as_sentences():
    assert repr(Guard("eq", S0, 4)) == "s0 == 4"
    assert repr(Guard("broadcast", S0, S1)) == "s0 broadcasts with s1"


def test_bind_reads_inputs_and_then_expressions():
    variables = (
        SizeVar("s0", InputDim(1, 0)),
        SizeVar("s1", InputDim(0, 1)),
        SizeVar("s2", broadcast_size(S0, S1)),
        SizeVar("half", symbol("s2") // 2),
    )
    assert bind(variables, ((9, 1), (8,))) == {"s0": 8, "s1": 1, "s2": 8, "half": 4}


def test_bind_names_the_symbol_that_comes_too_late():
    with pytest.raises(KeyError, match="s0"):
        bind((SizeVar("s1", S0 + 1), SizeVar("s0", InputDim(0, 0))), ((3,),))
