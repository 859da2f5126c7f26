"""Sums, products, comparisons, minima. The interpreter adds, multiplies and compares the bits of bf16 as integers; a
GPU has instructions for them (`fma.rn.bf16`, `setp.lt.bf16`), which round once. `tl.maximum` without `propagate_nan`
returns the operand that is a number (`max.f32`), where the interpreter returns NaN; and `max.f32` treats +0 as larger
than −0. A product that is added to something becomes one `fma`, rounded once (Triton's `enable_fp_fusion`, on by
default): `x * x - y * y` of equal x and y is then not always 0. In a sum of two products, the left one is fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime import interpreter

from assay.backends.triton_interpreter import formats

Handle = interpreter.TensorHandle

_COMPARISONS = {
    "LT": np.less,
    "GT": np.greater,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}


def patch() -> None:
    builder: Any = interpreter.InterpreterBuilder
    builder.create_fadd = _sum_of(1)
    builder.create_fsub = _sum_of(-1)
    builder.create_fmul = _product
    builder.create_fma = _fused
    for kind, function in _COMPARISONS.items():
        for prefix in "OU":
            setattr(builder, f"create_fcmp{prefix}{kind}", _comparison(function))
    builder.create_maxnumf = _extreme(np.fmax, 1)
    builder.create_minnumf = _extreme(np.fmin, -1)
    builder.create_maximumf = _extreme(np.maximum, 1)
    builder.create_minimumf = _extreme(np.minimum, -1)
    builder.create_clampf = _clamp


def rounded(values: Any, dtype: Any) -> Any:
    """Return numbers as a handle of `dtype`, rounded once."""
    if formats.is_packed(dtype):
        return Handle(formats.packed(values, dtype), dtype)
    return Handle(values.astype(interpreter._get_np_dtype(dtype), copy=False), dtype)


def fused(x: Any, y: Any, z: Any) -> Any:
    """Return x · y + z in the next wider format, to be rounded once. It is exact there except for ties a billion times
    finer than the result's."""
    if x.dtype == np.float64:
        return x * y + z  # no wider format here
    wide = np.float64 if x.dtype == np.float32 else np.float32
    return x.astype(wide) * y.astype(wide) + z.astype(wide)


def _product(self: Any, left: Any, right: Any) -> Any:
    dtype = left.dtype.scalar
    x, y = formats.unpacked(left.data, dtype), formats.unpacked(right.data, dtype)
    product = rounded(x * y, dtype)
    product.factors = x, y
    return product


def _sum_of(sign: int) -> Callable[..., Any]:
    add: Any = np.add if sign == 1 else np.subtract

    def create(self: Any, left: Any, right: Any) -> Any:
        dtype = left.dtype.scalar
        if hasattr(left, "factors"):
            (x, y), z = left.factors, formats.unpacked(right.data, dtype)
            return rounded(fused(x, y, z if sign == 1 else -z), dtype)
        if hasattr(right, "factors"):
            x, y = right.factors
            return rounded(fused(x if sign == 1 else -x, y, formats.unpacked(left.data, dtype)), dtype)
        return rounded(add(formats.unpacked(left.data, dtype), formats.unpacked(right.data, dtype)), dtype)

    return create


def _fused(self: Any, x: Any, y: Any, z: Any) -> Any:
    dtype = z.dtype.scalar
    a, b, c = (formats.unpacked(h.data, dtype) for h in (x, y, z))
    return rounded(fused(a, b, c), dtype)


def _comparison(function: Any) -> Callable[..., Any]:
    def create(self: Any, left: Any, right: Any) -> Any:
        dtype = left.dtype.scalar
        answer = function(formats.unpacked(left.data, dtype), formats.unpacked(right.data, dtype))
        return Handle(answer, interpreter.tl.int1)

    return create


def extreme(function: Any, sign: int, left: Any, right: Any) -> Any:
    """Return the larger (`sign` 1) or smaller of two arrays; of two zeros, +0 is the larger."""
    chosen = function(left, right)
    zeros = chosen == 0
    if zeros.any():
        chosen = np.where(zeros & (left == right), sign * (sign * left + sign * right), chosen)
    return chosen


def _extreme(function: Any, sign: int) -> Callable[..., Any]:
    def create(self: Any, left: Any, right: Any) -> Any:
        dtype = left.dtype.scalar
        values = (formats.unpacked(h.data, dtype) for h in (left, right))
        return rounded(extreme(function, sign, *values), dtype)

    return create


def _clamp(self: Any, value: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
    dtype = value.dtype.scalar
    x, lower, upper = (formats.unpacked(h.data, dtype) for h in (value, low, high))
    if "ALL" in str(propagate_nan):
        return rounded(np.minimum(np.maximum(x, lower), upper), dtype)
    return rounded(np.fmin(np.fmax(x, lower), upper), dtype)
