"""Random rounding: each operation is disturbed by what float32 would lose there; one that moves values is not."""

import pytest
import torch
from torch.nn import functional as F

from assay.check import rounding

REFERENCES = {
    "a convolution": lambda x, y: F.conv1d(x[None], y[None, :, :3]),
    "cosine similarity": torch.cosine_similarity,
    "a product of views": lambda x, y: x @ y.t() + x @ y.t(),
    "a formula": lambda x, y: (x * y - torch.sqrt(x * x + 1)) / (1 + y.exp()),
    "in place": lambda x, y: (x * y).add_(x * y).mul_(0.3),
}


def evaluated(reference, args, seed, **memory):
    with rounding._mode()(seed, **memory) as mode:
        result = reference(*args)
    return result, mode.arithmetic


@pytest.mark.parametrize("name", REFERENCES)
def test_what_depends_on_inputs_alone_is_computed_once_and_gives_the_same_bits(name):
    args = [torch.randn(6, 5, dtype=torch.float64) for _ in range(2)]
    before = [a.clone() for a in args]
    known = {}
    memory = {"inputs": frozenset(a.untyped_storage().data_ptr() for a in args), "known": known}
    for seed in range(3):
        expected, _ = evaluated(REFERENCES[name], args, seed)
        result, _ = evaluated(REFERENCES[name], args, seed, **memory)
        assert torch.equal(result, expected)
        assert known
    assert all(map(torch.equal, args, before))


@pytest.mark.parametrize("name", [n for n in REFERENCES if n != "in place"])
def test_the_errors_have_the_size_that_float32_makes(name):
    torch.manual_seed(7)
    args = [torch.randn(40, 50, dtype=torch.float64) for _ in range(2)]
    exact = REFERENCES[name](*args)
    samples = [evaluated(REFERENCES[name], args, seed)[0] - exact for seed in range(6)]
    spread = torch.stack(samples).square().mean().sqrt()
    single = REFERENCES[name](*(a.float() for a in args)).double() - REFERENCES[name](
        *(a.float().double() for a in args)
    )
    assert 0.25 < spread / single.square().mean().sqrt() < 8


def test_moving_and_choosing_rounds_nothing():
    x = torch.randn(6, 5, dtype=torch.float64)
    moved, arithmetic = evaluated(lambda x: x.t().flip(0).clamp(min=-1).sort(-1).values * 2, [x], 0)
    assert not arithmetic
    assert torch.equal(moved, x.t().flip(0).clamp(min=-1).sort(-1).values * 2)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_variance_of_equal_values_is_as_uncertain_as_their_mean(name, keepdim):
    """A kernel that multiplies by 1/n has a mean that is half an ulp off, and a variance of the square of that."""
    x = torch.full((3, 5, 7), 0.7, dtype=torch.float64)
    variance = getattr(torch, name)
    for dim in (-1, (0, 2), None):
        with rounding._mode()(1):
            found = variance(x, dim, correction=0, keepdim=keepdim)
        exact = variance(x, dim, correction=0, keepdim=keepdim)
        pairs = zip(found, exact, strict=True) if "mean" in name else [(found, exact)]
        for value, right in pairs:
            assert value.shape == right.shape and torch.allclose(value, right, atol=1e-6) and not value.equal(right)
