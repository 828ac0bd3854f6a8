"""gcc's report on the kernels: every innermost loop is vectorized."""
import json
import re

import pytest

from tests.codegen.host.conftest import CASES
from tf_autofuse.build.host_library import marked_lines, vectorized_loops

#: Loops that are none, or that no vector instruction could do: at most 7 elements, backwards, at indices that
#: are data; and tails of less than the lanes.
SHORT = re.compile(
    r"for \(int(?:64|32)_t \w = 0; \w < (?:[0-7]|\d+ - j|end - j|n\d+ - j|af_lanes_taken\([1-7], rest\));")
SCALAR = ("fill", "gathered_elements")


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_innermost_loop_is_vectorized(kernels, name):
    with open(kernels[name].folder + "/manifest.json", encoding="utf-8") as stream:
        loops = vectorized_loops(json.load(stream))
    with open(kernels[name].source_path, encoding="utf-8") as stream:
        text = stream.read()
    lines = text.split("\n")
    assert sorted(loops) == marked_lines(text)
    scalar = [(n, lines[n - 1].strip()) for n, done in loops.items() if not done]
    if name not in SCALAR:
        assert not [text for _, text in scalar if not SHORT.match(text)]
