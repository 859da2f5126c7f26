"""GELU of 16-bit results is proved over every bf16 and fp16, with the device's special functions at their bounds."""

import re

import numpy as np
import pytest
import torch

from assay.backends.nvrtc import HEADERS
from assay.catalog import library

HEADER = (HEADERS / "assay/short_float.cuh").read_text()
TRITON = (library.ROOT / "short_float.py").read_text()


def coefficients(function):
    """Those of P, the highest power first, as the header has them."""
    body = HEADER.split(f"float {function}(float x)")[1].split("return")[0]
    return [np.float32(c) for c in re.findall(r"(-?\d[\d.e-]*)f[;)]", body)]


def gelu(x, p, power_off, reciprocal_off):
    """What the kernel computes, where 2^x and 1/x are off by that many ulps."""
    t, value = x * x, np.full_like(x, p[0])
    for c in p[1:]:
        value = (value.astype(np.float64) * t + c).astype(np.float32)
    power = np.exp2((x * value).astype(np.float64)) * (1 + power_off * 2.0**-23)
    share = 1 / (np.float32(1) + power.astype(np.float32)).astype(np.float64) * (1 + reciprocal_off * 2.0**-23)
    return x * np.where(share < 2.0**-126, 0, share).astype(np.float32)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function, limit", [("short_gelu", 0.52), ("shorter_gelu", 0.75)])
def test_gelu_is_within_its_limit_for_every_input(function, limit, dtype):
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    x = every[torch.isfinite(every)]
    exact = x.double() * torch.special.ndtr(x.double())
    info = torch.finfo(dtype)
    own = torch.exp2(torch.log2(exact.abs().clamp(min=info.tiny)).floor()) * info.eps
    rough = torch.exp2(torch.log2(x.double().abs().clamp(min=2.0**-126)).floor()) * 2.0**-23
    unit = torch.maximum(own, 12 * rough)  # as check counts: twice GELU's six roundings in float32 at the scale of x
    with np.errstate(all="ignore"):
        for power_off in (-2, 0, 2):
            for reciprocal_off in (-1, 0, 1):
                got = torch.from_numpy(gelu(x.float().numpy(), coefficients(function), power_off, reciprocal_off))
                assert ((got.to(dtype).double() - exact).abs() / unit).max() <= limit


@pytest.mark.parametrize("function", ["short_gelu", "shorter_gelu"])
def test_triton_has_the_same_coefficients(function):
    body = TRITON.split(f"def {function}(x)")[1].split('"""')[2].split("return")[0]
    digits = re.findall(r"\d\.[\d.e-]+", body)
    assert [np.float32(d) for d in digits] == [abs(c) for c in coefficients(function)]
