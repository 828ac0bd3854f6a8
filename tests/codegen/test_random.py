"""Random regions: what is drawn is verified, scheduled, generated, built and run; the bits are those of
numpy.

Drawn in batches, so that their kernels build together. Failures name the region's text, which parse_fused
reads back.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.codegen.conftest import MACHINE
from tests.codegen.test_end_to_end import same
from tests.strategies import arrays_for, dims_for, fused_graphs
from tf_autofuse.build.kernels import KernelBinary, build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT32
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.text import dump
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.runtime import registry
from tf_autofuse.schedule.schedule import schedule

DTYPES = (FLOAT32, FLOAT16, INT32, BFLOAT16, BOOL)
NUMBERS = st.lists(st.integers(0, 99), min_size=8, max_size=8)


@pytest.mark.once
@settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(fused_graphs(input_dtypes=DTYPES), min_size=12, max_size=12, unique_by=dump),
    st.lists(NUMBERS, min_size=5, max_size=5),
)
def test_random_regions(build_settings, graphs, numbers):
    made = []
    for fused in graphs:
        verify_fused(fused)
        made.append(generate(fused, schedule(fused.graphs[0], MACHINE), MACHINE, None))
    for fused, result in zip(graphs, build_kernels(made, build_settings)):
        assert isinstance(result, KernelBinary), "%s\n%s" % (dump(fused), result)
        for seed, choices in enumerate(numbers):
            dims = dims_for(fused, choices)
            inputs = arrays_for(fused, dims, seed)
            with np.errstate(all="ignore"):
                expected = evaluate_fused(fused, inputs)
            outputs, info = registry.run(result, fused, inputs)
            assert all(
                same(t.dtype, a, b) for t, a, b in zip(fused.outputs, outputs, expected)
            ), "%s\n%s\n%s" % (dump(fused), dims, info)
