"""What fusion leaves of four building blocks: the number of ops that run, and the same results.

The numbers are those that the documents name; a block that falls apart again shows here.
"""
import pytest

from bench import kernel_counts

pytestmark = pytest.mark.tensorflow

#: block -> (ops that run without fusion, at most so many with it, fused ops)
EXPECTED = {
    "MLP tower with layer norm": (36, 6, 3),
    "attention block": (32, 11, 5),
    "DIN attention unit": (25, 7, 4),
    "MMOE gate": (29, 11, 3),
}


@pytest.mark.parametrize("block", sorted(kernel_counts.BLOCKS))
def test_block_is_fused_to_few_kernels(block):
    before, after, kernels = EXPECTED[block]
    counted = kernel_counts.count(kernel_counts.BLOCKS[block], "host")
    assert counted.plain == before
    assert counted.fused <= after
    assert 0 < len(counted.kernels) <= kernels
    assert counted.worst < 1e-5
