"""Nothing in a generated kernel is there for show: without any one of its synchronising lines the twin
objects, and with a wrong extent it objects or the result is wrong."""

import dataclasses
import re

import pytest

from tests.codegen.conftest import MACHINE, Built
from tests.codegen.test_end_to_end import same
from tests.strategies import arrays_for
from tf_autofuse.build.kernels import KernelBinary, build_kernels
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.library import KernelError

#: Blocks of several tiles: some lines matter between tiles only.
TWO_CORES = dataclasses.replace(MACHINE, vector_cores=2, ub_bytes=24 * 1024)
SYNCHRONISING = re.compile(r"^\s*(AscendC::PipeBarrier<|\w+\.EnQue\(|\w+\.FreeTensor\(|\w+ = \w+\.DeQue<)")
WRONG = {
    "a load that is too long": (
        r"Params\{1, static_cast<uint32_t>\((\d+) \* (\w+)\)",
        r"Params{1, static_cast<uint32_t>(\1 * (\2 + 1))",
    ),
    "a tile too many": (r"i < end", "i <= end"),
    "a block too few": (r"total = (.*);", r"total = \1 - 1;"),
    "an offset that is off": (r"gm_in1\[", "gm_in1[1 + "),
    "a buffer that is too small": (r"\(vecin1, 2, t.vecin1_bytes\)", "(vecin1, 2, t.vecin1_bytes / 2)"),
    "an uneven UB address": (r"AscendC::Relu\(relu_0,", "AscendC::Relu(relu_0[1],"),
    "one op for another": ("AscendC::Relu", "AscendC::Abs"),
}


def mutants(sources):
    """(what was done, the changed sources), one change each."""
    lines = sources.text("kernel.cpp").split("\n")
    for i, line in enumerate(lines):
        if SYNCHRONISING.match(line):
            yield "without line %d: %s" % (i + 1, line.strip()), with_text(
                sources, lines[:i] + lines[i + 1 :]
            )
    for what, (pattern, replacement) in WRONG.items():
        text, count = re.subn(pattern, replacement, sources.text("kernel.cpp"), count=1)
        assert count == 1, what
        yield what, with_text(sources, text.split("\n"))


def with_text(sources, lines):
    files = tuple((n, "\n".join(lines) if n == "kernel.cpp" else t) for n, t in sources.files)
    return dataclasses.replace(sources, files=files)


@pytest.fixture(scope="module")
def outcomes(built, build_settings):
    one: Built = built["public_example"]
    named = list(mutants(one.sources))
    results = build_kernels([s for _, s in named], build_settings)
    inputs = arrays_for(one.region.fused, one.region.dims[0], 0)
    expected = evaluate_fused(one.region.fused, inputs)
    found = {}
    for (what, _), result in zip(named, results):
        assert isinstance(result, KernelBinary), (what, result)
        try:
            outputs, info = registry.run(result, one.region.fused, inputs, TWO_CORES)
            assert dict(info.values)[one.impls[0].block_symbol] > 1
            found[what] = (
                "" if same(one.region.fused.outputs[0].dtype, outputs[0], expected[0]) else "wrong result"
            )
        except KernelError as error:
            found[what] = str(error)
    return found


def test_every_synchronising_line_is_needed(outcomes):
    lines = {what: text for what, text in outcomes.items() if what.startswith("without")}
    assert len(lines) >= 11
    assert not [what for what, text in lines.items() if not text or text == "wrong result"]


def test_a_missing_barrier_is_called_by_its_name(outcomes):
    texts = [text for what, text in outcomes.items() if "PipeBarrier" in what]
    assert len(texts) >= 3 and all(
        "hazard" in t and "PipeBarrier<PIPE_V> is missing" in t for t in texts
    ), texts


@pytest.mark.parametrize("what", sorted(WRONG))
def test_a_wrong_extent_shows(outcomes, what):
    assert outcomes[what] != ""


def test_the_kernel_itself_is_fine(built):
    one = built["public_example"]
    inputs = arrays_for(one.region.fused, one.region.dims[0], 0)
    outputs, _ = registry.run(one.binary, one.region.fused, inputs, TWO_CORES)
    expected = evaluate_fused(one.region.fused, inputs)[0]
    assert same(one.region.fused.outputs[0].dtype, outputs[0], expected)
