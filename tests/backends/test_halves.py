"""fp16 and bf16 by hand agree with PyTorch on every bit pattern and on random floats."""

import numpy as np
import pytest
import torch
from numba import njit

from assay.backends import halves
from assay.backends.njit import arrays, load, store

ALL = torch.arange(65536, dtype=torch.int32).to(torch.uint16)


@njit
def _widen(x, y):
    for i in range(x.size):
        y[i] = load(x, i)


@njit
def _round(x, y):
    for i in range(x.size):
        store(y, i, x[i])


def _floats():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 300_000, dtype=np.uint32)
    near = ALL.view(torch.float16).float()
    ties = torch.cat([near * (1 + 2.0**-11), near * (1 - 2.0**-12), ALL.view(torch.bfloat16).float() * (1 + 2.0**-8)])
    return torch.cat([torch.from_numpy(bits.view(np.float32).copy()), near, ties])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_widening_is_exact_for_every_pattern(dtype):
    values = ALL.view(dtype)
    wide = torch.empty(65536)
    _widen(*arrays(values, wide))
    assert torch.equal(wide.nan_to_num(7.0), values.float().nan_to_num(7.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_is_to_nearest_even(dtype):
    values = _floats()
    out = torch.empty(values.numel(), dtype=dtype)
    _round(*arrays(values, out))
    expected = values.to(dtype)
    assert torch.equal(out.isnan(), expected.isnan())
    bits = {torch.float16: torch.int16, torch.bfloat16: torch.int16}[dtype]
    keep = ~expected.isnan()
    assert torch.equal(out.view(bits)[keep], expected.view(bits)[keep])


def test_the_plain_python_forms_agree_with_the_compiled_ones():
    for value in (0.0, -0.0, 1.0, 65519.9, 65520.0, 1e-8, 6e-5, float("inf"), float("nan"), 3.4e38, 1.00390625):
        v = np.float32(value)
        t = torch.tensor([value])
        assert int(halves.bf16_of_float(v)) & 0x7F80 == int(t.to(torch.bfloat16).view(torch.int16)[0]) & 0x7F80
        if value == value:
            assert int(halves.fp16_of_float(v)) == int(t.half().view(torch.int16)[0]) & 0xFFFF
