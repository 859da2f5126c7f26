"""fp16 and bf16 as bit patterns, for languages that have no arithmetic on them. Conversions round to nearest even."""

from __future__ import annotations

from typing import Any

import numpy as np

_TWO_112 = np.float32(2.0**112)


def float_of_bf16(bits: Any) -> Any:
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


def bf16_of_float(value: Any) -> Any:
    bits = np.float32(value).view(np.uint32)
    if (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        return np.uint16(0x7FC0)
    lsb = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + lsb) >> np.uint32(16))


def float_of_fp16(bits: Any) -> Any:
    """Shift the fraction into place and correct the exponent by a multiplication; exact for subnormals too."""
    wide = np.uint32(np.uint16(bits))
    scaled = np.float32(np.uint32((wide & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * _TWO_112)
    out = scaled.view(np.uint32)
    if (wide & np.uint32(0x7C00)) == np.uint32(0x7C00):
        out = np.uint32(0x7F800000) | np.uint32((wide & np.uint32(0x3FF)) << np.uint32(13))
    return np.uint32(out | np.uint32((wide & np.uint32(0x8000)) << np.uint32(16))).view(np.float32)


def fp16_of_float(value: Any) -> Any:
    bits = np.float32(value).view(np.uint32)
    sign = np.uint32((bits >> np.uint32(16)) & np.uint32(0x8000))
    size = np.uint32(bits & np.uint32(0x7FFFFFFF))
    if size > np.uint32(0x7F800000):
        return np.uint16(sign | np.uint32(0x7E00))
    if size >= np.uint32(0x477FF000):  # 65520 and above round to infinity
        return np.uint16(sign | np.uint32(0x7C00))
    if size < np.uint32(0x38800000):  # subnormal in fp16: adding 0.5 leaves the rounded fraction in the low bits
        shifted = np.float32(np.uint32(size).view(np.float32) + np.float32(0.5))
        return np.uint16(sign | np.uint32(shifted.view(np.uint32) - np.uint32(0x3F000000)))
    rounded = np.uint32(size - np.uint32(0x38000000) + np.uint32(0xFFF) + ((size >> np.uint32(13)) & np.uint32(1)))
    return np.uint16(sign | np.uint32(rounded >> np.uint32(13)))
