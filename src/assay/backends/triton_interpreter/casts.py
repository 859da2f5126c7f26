"""Casts. The interpreter truncates fp32 → bf16 where a GPU rounds to nearest even, loses the bits of subnormals, treats
bf16's and fp8's bits as integers when they meet an integer type, and casts floats to integers as the host's processor
does. PTX's `cvt` saturates: what is too large becomes the largest integer, NaN becomes 0 (from fp32 to at most 32 bits)
or the smallest; 8-bit integers come from the low byte of a 16-bit `cvt`."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends.triton_interpreter import formats


def patch() -> None:
    numpy: Any = np
    numpy.seterr(all="ignore")  # GPUs do not warn
    original = interpreter._convert_float

    def convert(data: Any, source: Any, destination: Any, rounding_mode: Any) -> Any:
        """Convert between floating types and return the destination's storage."""
        if "e4b15" in source.name + destination.name:
            return original(data, source, destination, rounding_mode)
        return _stored(formats.unpacked(data, source), destination, "TZ" in str(rounding_mode))

    def cast(self: Any, source: Any, destination: Any) -> Any:
        before, after = source.dtype.scalar, destination.scalar
        values = formats.unpacked(source.data, before)
        if before.is_floating() and not after.is_floating() and not after.is_ptr():
            return interpreter.TensorHandle(integers(values, after), after)
        return interpreter.TensorHandle(_stored(values, after, False), after)

    def fp_to_fp(self: Any, source: Any, destination: Any, rounding_mode: Any) -> Any:
        after = destination.scalar
        return interpreter.TensorHandle(convert(source.data, source.dtype.scalar, after, rounding_mode), after)

    interpreter._convert_float = convert
    builder: Any = interpreter.InterpreterBuilder
    builder.cast_impl = cast
    builder.create_fp_to_fp = fp_to_fp


def _stored(values: Any, dtype: Any, to_zero: bool) -> Any:
    if formats.is_packed(dtype):
        return formats.packed(values, dtype, to_zero)
    narrow = values.astype(interpreter._get_np_dtype(dtype))
    if to_zero and dtype.is_floating():
        beyond = np.abs(narrow).astype(np.float64) > np.abs(values)
        narrow = np.where(beyond, np.nextafter(narrow, narrow.dtype.type(0)), narrow)
    return narrow


def integers(values: Any, dtype: Any) -> Any:
    """Convert floats to integers by the rules of PTX's `cvt.rzi`."""
    if dtype == tl.int1:
        return values != 0
    wanted = interpreter._get_np_dtype(dtype)
    signed = np.issubdtype(wanted, np.signedinteger)
    width = max(16, wanted.itemsize * 8)
    limits = np.iinfo(f"{'int' if signed else 'uint'}{width}")
    wide = np.trunc(values.astype(np.float64))
    inside = (wide >= float(limits.min)) & (wide < float(limits.max) + (width < 64))
    result = np.where(inside, wide, 0).astype(limits.dtype)
    if not inside.all():
        undefined = 0 if width < 64 and values.dtype != np.float64 else (limits.min if signed else 1 << (width - 1))
        result = np.where(wide >= float(limits.max), limits.dtype.type(limits.max), result)
        result = np.where(wide < float(limits.min), limits.dtype.type(limits.min), result)
        result = np.where(np.isnan(wide), limits.dtype.type(undefined), result)
    return result.astype(wanted)
