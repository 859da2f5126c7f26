"""Division and elementary functions of float32. `/` and `tl.fdiv` are `div.full.f32` (2 ulp): the dividend times an
approximate reciprocal, so that 41 / 41 is not 1. `tl.sqrt` and `tl.rsqrt` are `sqrt.approx.ftz` and `rsqrt.approx.ftz`
(relative errors of 2⁻²³ and 2⁻²²·⁹); `tl.exp` multiplies by log₂e in float32 before `ex2.approx`, so its relative error
grows with |x|; `tl.exp2` is `ex2.approx.ftz`. `.ftz` flushes subnormal operands and results to zero; `tl.floor` and
`tl.ceil` have it too. `%` of floats is x − y·trunc(x / y). `tl.div_rn` and `tl.sqrt_rn` are exact. `tl.erf`, a Python
loop in the interpreter, is taken from PyTorch, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime import interpreter

from assay.backends.approximations import divide_full, exp2_approx, exp_by_exp2, flushed, rsqrt_approx, sqrt_approx
from assay.backends.triton_interpreter import formats
from assay.backends.triton_interpreter.arithmetic import fused, rounded


def patch() -> None:
    builder: Any = interpreter.InterpreterBuilder
    builder.create_fdiv = _division
    builder.create_frem = _remainder
    builder.create_sqrt = _of_float32(sqrt_approx, np.sqrt)
    builder.create_rsqrt = _of_float32(rsqrt_approx, lambda x: 1 / np.sqrt(x))
    builder.create_exp = _of_float32(exp_by_exp2, np.exp)
    builder.create_exp2 = _of_float32(exp2_approx, np.exp2)
    builder.create_floor = _of_float32(lambda x: np.floor(flushed(x)), np.floor)
    builder.create_ceil = _of_float32(lambda x: np.ceil(flushed(x)), np.ceil)
    builder.create_erf = _of_float32(erf, erf)


def erf(x: Any) -> Any:
    import torch

    wide = torch.from_numpy(np.array(x, dtype=np.float64, order="C"))
    return torch.erf(wide).numpy().astype(x.dtype)


def _of_float32(approximate: Callable[[Any], Any], exact: Callable[[Any], Any]) -> Callable[..., Any]:
    def create(self: Any, value: Any) -> Any:
        dtype = value.dtype.scalar
        data = formats.unpacked(value.data, dtype)
        return rounded((approximate if data.dtype == np.float32 else exact)(data), dtype)

    return create


def _division(self: Any, left: Any, right: Any) -> Any:
    dtype = left.dtype.scalar
    x, y = formats.unpacked(left.data, dtype), formats.unpacked(right.data, dtype)
    return rounded(divide_full(x, y) if x.dtype == np.float32 else x / y, dtype)


def _remainder(self: Any, left: Any, right: Any) -> Any:
    dtype = left.dtype.scalar
    x, y = formats.unpacked(left.data, dtype), formats.unpacked(right.data, dtype)
    if x.dtype != np.float32:
        return rounded(np.fmod(x, y), dtype)
    rest = fused(-np.trunc(x / y), y, x).astype(np.float32)
    return rounded(np.where(np.isinf(y) & np.isfinite(x), x, rest), dtype)
