"""Of a large workload slices are judged: the ends, where an index outgrows its format, and others at random."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.catalog.library import find_op
from assay.check.slices import judged_in_slices, slices
from assay.workload import Workload

LENGTHS = st.integers(1, 1 << 36)


@given(LENGTHS, st.integers(1, 1 << 20), st.integers(1, 1 << 12), st.integers(2, 32))
def test_slices_lie_within_the_axis_do_not_overlap_and_include_both_ends(length, step, row, count):
    starts = slices(length, step, row, count)
    assert starts == sorted(set(starts), reverse=True)
    assert starts[-1] == 0 and length - step <= starts[0] < length
    assert all(start % step == 0 for start in starts)
    assert len(starts) <= max(count, 2 + 2 * 3)


@given(LENGTHS, st.integers(1, 1 << 20), st.integers(1, 1 << 12), st.sampled_from([24, 31, 32]))
def test_the_element_that_outgrows_a_format_is_judged_and_so_is_the_one_before(length, step, row, bits):
    starts = slices(length, step, row)
    for index in ((1 << bits) - row, 1 << bits):
        if 0 <= index < length * row:
            along = index // row
            assert 1 << bits >= length * row or any(start <= along < start + step for start in starts)


@pytest.mark.slow
@given(st.integers(1, 1 << 16), st.integers(1, 1 << 10))
def test_a_workload_of_few_slices_is_judged_whole(total, step):
    starts = slices(total * step, step, 1, count=total)
    assert total > 16 or starts == [i * step for i in reversed(range(total))]


def test_a_kernel_cannot_predict_the_slices():
    assert len({tuple(slices(1 << 30, 1 << 16, 1)) for _ in range(8)}) > 1


def test_a_large_workload_without_results_is_right():
    """A failure is shrunk to it where the other tensors are large: the weights of a product without rows."""
    workload = Workload.of(find_op("mx_linear"), "m=0,n=1025,k=4096,block=32,dtype=bf16")
    outcome = judged_in_slices(workload, {}, {"out": torch.empty(0, 1025)}, None)
    assert outcome.finding is None and not outcome.errors
