"""GELU and its slope for 16-bit results are proved over every bf16 and fp16, with the device's special functions at
their bounds."""

import re

import numpy as np
import pytest
import torch

from assay.backends.nvrtc import HEADERS
from assay.catalog import library

HEADER = (HEADERS / "assay/short_float.cuh").read_text()
TRITON = (library.ROOT / "short_float.py").read_text()
BELL = re.search(r"fmaf\(t, (-[\d.]+)f, (-[\d.]+)f\)", HEADER).groups()
"""φ(x) is 2 to the power of a multiple of x² and a constant: these two."""


def coefficients(function):
    """Those of P, the highest power first, as the header has them."""
    body = HEADER.split(f"float {function}(float x)")[1].split("return")[0]
    return [np.float32(c) for c in re.findall(r"(-?\d[\d.e-]*)f[;)]", body)]


def every(dtype):
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    return bits[torch.isfinite(bits)]


def ulp(value, dtype):
    info = torch.finfo(dtype)
    return torch.exp2(torch.log2(value.abs().clamp(min=info.tiny)).floor()) * info.eps


def multiply_add(a, b, c):
    return (a.astype(np.float64) * b + c).astype(np.float32)


def flushed(value):
    return np.where(value < 2.0**-126, 0, value).astype(np.float32)


def power_of_2(x, off):
    """As the device has it, off by that many ulps."""
    return flushed(np.exp2(x.astype(np.float64)) * (1 + off * 2.0**-23))


def phi(x, p, power_off, reciprocal_off):
    """What the kernel computes, where 2^x and 1/x are off by that many ulps."""
    t, value = x * x, np.full_like(x, p[0])
    for c in p[1:]:
        value = multiply_add(value, t, c)
    power = power_of_2(x * value, power_off)
    return flushed(1 / (np.float32(1) + power).astype(np.float64) * (1 + reciprocal_off * 2.0**-23))


def slope(x, p, power_off, reciprocal_off):
    """Φ(x) + x·φ(x), as the kernel computes it."""
    factor, shift = map(np.float32, BELL)
    bell = power_of_2(multiply_add(x * x, factor, shift), power_off)
    return multiply_add(x, bell, phi(x, p, power_off, reciprocal_off))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function, limit", [("short_gelu", 0.52), ("shorter_gelu", 0.75)])
def test_gelu_is_within_its_limit_for_every_input(function, limit, dtype):
    x = every(dtype)
    exact = x.double() * torch.special.ndtr(x.double())
    rough = torch.exp2(torch.log2(x.double().abs().clamp(min=2.0**-126)).floor()) * 2.0**-23
    # As check counts: twice GELU's six roundings in float32 at the scale of x.
    unit = torch.maximum(ulp(exact, dtype), 12 * rough)
    wide = x.float().numpy()
    with np.errstate(all="ignore"):
        for power_off in (-2, 0, 2):
            for reciprocal_off in (-1, 0, 1):
                got = torch.from_numpy(wide * phi(wide, coefficients(function), power_off, reciprocal_off))
                assert ((got.to(dtype).double() - exact).abs() / unit).max() <= limit


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function, roundings, limit", [("short_gelu_slope", 6, 0.7)])
def test_the_slope_is_within_its_limit_for_every_input(function, roundings, limit, dtype):
    x = every(dtype)
    exact = torch.special.ndtr(x.double()) + x.double() * torch.exp(-0.5 * x.double() ** 2) * 0.3989422804014327
    # Of dy only the mantissa matters: thirty-two of them, and the largest. As check counts, the unit is an ulp of the
    # result, or twice the op's roundings in float32 at the scale of dy.
    every_dy = torch.cat([1 + torch.arange(32) / 32, torch.tensor([2 - torch.finfo(dtype).eps])])
    least = 2 * roundings * 2.0**-23
    with np.errstate(all="ignore"):
        for power_off in (-2, 0, 2):
            for reciprocal_off in (-3, 0, 3):  # Triton's: a reciprocal root within 1.1 ulps, squared and rounded
                got = torch.from_numpy(slope(x.float().numpy(), coefficients(function), power_off, reciprocal_off))
                for dy in every_dy:
                    right = exact * dy.double()
                    error = ((got * dy).to(dtype).double() - right).abs()
                    assert (error / ulp(right, dtype).clamp(min=least)).max() <= limit


@pytest.mark.parametrize("function", ["short_gelu", "shorter_gelu", "short_gelu_slope"])
def test_triton_has_the_same_coefficients(function):
    body = TRITON.split(f"def {function}(x)")[1].split('"""')[2].split("return")[0]
    digits = re.findall(r"\d\.[\d.e-]+", body)
    assert [np.float32(d) for d in digits] == [abs(c) for c in coefficients(function)]


def test_triton_has_the_same_bell():
    factor, shift = BELL
    assert f"t * {factor} - {shift.removeprefix('-')})" in TRITON
