"""A random op's draws: independent at every distance, within one draw and between two seeds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.check import distribution
from assay.dtype import dtype
from assay.op import Attribute, Axis, Op, Random, Tensor
from assay.workload import Workload


def dropped(x, *, p, key):
    kept = torch.rand(x.shape, generator=torch.Generator().manual_seed(key)) >= p
    return torch.where(kept, x / (1 - p), 0.0)


def outcomes(x, *, p):
    return [(x / (1 - p), 1 - p), (torch.zeros_like(x), p)]


DROP = Op(
    "drop",
    dropped,
    {"n": Axis(min=1)},
    {"x": Tensor("n")},
    {"out": Tensor("n")},
    {"p": Attribute(0.5, (0.5, 0.1)), "key": Attribute(0)},
    random=Random(seed="key", outcomes=outcomes),
    source=__file__,
)


def judged(n, p, first, other):
    """The finding about two draws, given as the mask of elements that are kept."""
    workload = Workload.of(DROP, f"n={n},p={p},dtype=fp32")
    x = 1 + torch.rand(n, generator=torch.Generator().manual_seed(7))
    one, two = (torch.where(kept, (x.double() / (1 - p)).float(), 0.0) for kept in (first, other))
    return distribution.judge(workload, {"x": x}, one, one.clone(), two, dtype("fp32"))


def kept(n, p, seed):
    return torch.rand(n, generator=torch.Generator().manual_seed(seed)) >= p


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 6000), p=st.sampled_from([0.5, 0.1]), seed=st.integers(0, 1 << 20))
def test_an_honest_generator_passes(n, p, seed):
    assert judged(n, p, kept(n, p, seed), kept(n, p, seed + (1 << 21))) is None


@pytest.mark.parametrize("p", [0.5, 0.1])
@pytest.mark.parametrize("block", [1300, 5000])
def test_a_block_that_is_drawn_again_is_found_at_any_distance(p, block):
    first = kept(20_000, p, 1)
    first[9_000 : 9_000 + block] = first[1_500 : 1_500 + block]
    found = judged(20_000, p, first, kept(20_000, p, 2))
    assert found.detector == "distribution" and found.what.endswith("is drawn again 7500 elements further on")


@pytest.mark.parametrize("p", [0.5, 0.1])
@pytest.mark.parametrize("apart", [-1024, -77, 5, 1024])
def test_the_next_seed_must_not_draw_the_same_further_on(p, apart):
    long = kept(30_000, p, 3)
    found = judged(20_000, p, long[5_000:25_000], long[5_000 + apart : 25_000 + apart])
    assert found.detector == "seed" and found.what.endswith(f"alike, {abs(apart)} elements apart")
