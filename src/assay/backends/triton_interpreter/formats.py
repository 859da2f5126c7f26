"""Converts bf16 and the fp8 formats to float32 and back: numpy lacks them, and the interpreter keeps their bits as
integers. Rounding is to nearest even; fp8 saturates at its largest finite value, as `cvt.rn.satfinite` does."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import triton.language as tl

_TORCH_NAMES = {
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
}
"""PyTorch's names for the formats. (No library has fp8e4b15; the interpreter's own conversion is used for it.)"""

_LARGEST = {"fp8e4nv": 448.0, "fp8e5": 57344.0, "fp8e4b8": 240.0, "fp8e5b16": 57344.0}


def is_packed(dtype: Any) -> bool:
    """Return whether the interpreter keeps this type as the integers of its bits."""
    return dtype is tl.bfloat16 or dtype.name == "bf16" or dtype.name in _TORCH_NAMES


@functools.cache
def _table(name: str) -> Any:
    import torch

    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    return codes.view(getattr(torch, _TORCH_NAMES[name])).to(torch.float32).numpy()


def unpacked(data: Any, dtype: Any) -> Any:
    """Return the numbers of an array of such a type: as float32 for packed types, the array itself for others."""
    name = dtype.name
    if name == "bf16":
        bits = np.ascontiguousarray(data).view(np.uint16).astype(np.uint32)
        return (bits << np.uint32(16)).view(np.float32).reshape(np.shape(data))
    if name in _TORCH_NAMES:
        return _table(name)[data.view(np.uint8)]
    return data


def packed(values: Any, dtype: Any, to_zero: bool = False) -> Any:
    """Return numbers rounded once to `dtype`, as the interpreter keeps them. `to_zero` truncates them (bf16 only)."""
    if dtype.name == "bf16":
        return _bf16(_float32_keeping_ties(values), to_zero)
    import torch

    largest = np.float32(_LARGEST[dtype.name])
    narrow = _float32_keeping_ties(values)
    narrow = np.where(np.isnan(narrow), narrow, np.clip(narrow, -largest, largest))
    tensor = torch.from_numpy(np.ascontiguousarray(narrow)).to(getattr(torch, _TORCH_NAMES[dtype.name]))
    return tensor.view(torch.uint8).numpy().reshape(np.shape(values))


def _bf16(values: Any, to_zero: bool) -> Any:
    bits = np.ascontiguousarray(values).view(np.uint32)
    half = np.uint32(0) if to_zero else np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + half) >> np.uint32(16)).astype(np.uint16)
    not_a_number = np.isnan(values)
    if not_a_number.any():
        rounded = np.where(not_a_number, np.uint16(0x7FC0), rounded)
    return rounded.reshape(np.shape(values))


def _float32_keeping_ties(values: Any) -> Any:
    """Return values as float32. An inexact one gets its last bit set, so that a second rounding sees no tie."""
    if values.dtype != np.float64:
        return values.astype(np.float32)
    near = values.astype(np.float32)
    inexact = np.isfinite(near) & (near.astype(np.float64) != values)
    if not inexact.any():
        return near
    beyond = np.abs(near).astype(np.float64) > np.abs(values)
    bits = near.view(np.uint32) - beyond.astype(np.uint32)  # towards zero first
    return np.where(inexact, bits | np.uint32(1), near.view(np.uint32)).view(np.float32)
