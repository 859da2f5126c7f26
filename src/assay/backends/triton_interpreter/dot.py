"""`tl.dot`. The interpreter multiplies matrices as numpy does, whatever `input_precision` says. What Triton emits:

- float32, by default or with "tf32": `mma…tf32` on the operands as they are; the hardware ignores their last 13 bits.
- "tf32x3": each operand as two TF32 (`cvt.rna.tf32`), three products. "bf16x3", "bf16x6": as two or three bf16, three
  or six products. "ieee": one `fma` after the other, starting from the accumulator.
- 16-bit operands: `mma` of 16 terms at a time. The products are exact; each such step adds them to the accumulator in
  one sum that is truncated, not rounded, to float32, or rounded to fp16 where that is the accumulator (`out_dtype`).
- fp8 on compute capability 9.0: as 16-bit ones, 32 terms at a time. In tiles of 64 rows and more (`wgmma`) the terms
  of a step keep 13 bits below the largest one's leading bit, and so does the accumulator, until
  `max_num_imprecise_acc` terms are added (by default never).
- int8: exact in 32 bits.

A product needs at least 16 terms (32 of 8-bit operands), as on the GPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends.triton_interpreter import formats

Handle = interpreter.TensorHandle

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
_ON_HOPPER_NEVER = 2**30
_FP8_SUM_BITS = 13
_WGMMA_ROWS = 64


def patch() -> None:
    builder: Any = interpreter.InterpreterBuilder
    builder.create_dot = _dot
    ours: Any = interpreter.interpreter_builder
    ours.options = dataclasses.replace(
        ours.options, allowed_dot_input_precisions=PRECISIONS, max_num_imprecise_acc_default=_ON_HOPPER_NEVER
    )
    ours.codegen_fns["min_dot_size"] = lambda left, right: (1, 1, 32 if left.scalar.primitive_bitwidth == 8 else 16)


def _dot(self: Any, left: Any, right: Any, total: Any, precision: Any, imprecise: Any) -> Any:
    dtype, out = left.dtype.scalar, total.dtype.scalar
    a, b, c = formats.unpacked(left.data, dtype), formats.unpacked(right.data, right.dtype.scalar), total.data
    if dtype.is_int():
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))  # below 2⁵³: exact
        return Handle((product.astype(np.int64) + c).astype(np.int32), out)
    if dtype == tl.float64:
        return Handle(np.matmul(a, b) + c, out)
    if dtype == tl.float32:
        return Handle(_float32(a, b, c, str(precision).rsplit(".", 1)[-1].lower()), out)
    if dtype.is_fp8() and out != tl.float16 and imprecise and a.shape[-2] >= _WGMMA_ROWS:
        return Handle(_fp8(a, b, c, imprecise), out)
    return Handle(_tensor_core(a, b, c, 32 if dtype.is_fp8() else 16), out)


def _float32(a: Any, b: Any, c: Any, precision: str) -> Any:
    if precision == "ieee":
        return _one_after_the_other(a, b, c)
    if precision == "tf32":
        return _tensor_core(_cut_to_tf32(a), _cut_to_tf32(b), c, 8)
    terms, split = {
        "tf32x3": (2, _rounded_to_tf32),
        "bf16x3": (2, _rounded_to_bf16),
        "bf16x6": (3, _rounded_to_bf16),
    }[precision]
    parts_a, parts_b = _parts(a, terms, split), _parts(b, terms, split)
    step = 8 if precision == "tf32x3" else 16
    total = np.zeros_like(c)
    # The smallest products first. Products with the remainder of an infinity (NaN) do not count.
    for i, j in sorted(
        ((i, j) for i in range(terms) for j in range(terms) if 0 < i + j < terms), key=sum, reverse=True
    ):
        total = _tensor_core(parts_a[i], parts_b[j], total, step)
    total = np.where(np.isnan(total), np.float32(0), total)
    return _tensor_core(parts_a[0], parts_b[0], total, step) + c


def _parts(values: Any, terms: int, split: Any) -> list[Any]:
    parts = []
    for _ in range(terms):
        parts.append(split(values))
        values = values - parts[-1]
    return parts


def _cut_to_tf32(values: Any) -> Any:
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _rounded_to_tf32(values: Any) -> Any:
    """`cvt.rna.tf32`: to nearest, ties away from zero."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    near = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), near, values)


def _rounded_to_bf16(values: Any) -> Any:
    return formats.unpacked(formats.packed(values, tl.bfloat16), tl.bfloat16)


def _one_after_the_other(a: Any, b: Any, c: Any) -> Any:
    wide_a, wide_b, total = a.astype(np.float64), b.astype(np.float64), np.array(c)
    product = np.empty(total.shape, np.float64)
    for k in range(a.shape[-1]):
        np.multiply(wide_a[..., k, None], wide_b[..., k, None, :], out=product)
        np.add(product, total, out=total, casting="unsafe")
    return total


def _tensor_core(a: Any, b: Any, c: Any, step: int) -> Any:
    wide_a, wide_b, total = a.astype(np.float64), b.astype(np.float64), c
    for k in range(0, a.shape[-1], step):
        exact = np.matmul(wide_a[..., k : k + step], wide_b[..., k : k + step, :]) + total
        total = exact.astype(c.dtype)
        if c.dtype == np.float32:
            beyond = np.abs(total) > np.abs(exact)
            total = np.where(beyond, np.nextafter(total, np.float32(0)), total)
    return total


def _fp8(a: Any, b: Any, c: Any, imprecise: int) -> Any:
    wide_a, wide_b, total = a.astype(np.float64), b.astype(np.float64), c
    partial = np.zeros(c.shape, np.float64)
    for k in range(0, a.shape[-1], 32):
        terms = wide_a[..., k : k + 32, None] * wide_b[..., None, k : k + 32, :]
        start = total if imprecise == _ON_HOPPER_NEVER else partial
        size = np.maximum(np.abs(terms).max(-2), np.abs(start))
        unit = np.exp2(np.floor(np.log2(np.where(size > 0, size, 1))) - _FP8_SUM_BITS)
        exact = terms.sum(-2) + start
        cut = (np.trunc(terms / unit[..., None, :]).sum(-2) + np.trunc(start / unit)) * unit
        cut = np.where(np.isfinite(exact), cut, exact)
        if imprecise == _ON_HOPPER_NEVER:
            total = cut.astype(np.float32)
        else:
            partial = cut
            if (k + 32) % imprecise == 0:
                total, partial = (total + partial).astype(np.float32), np.zeros_like(partial)
    return (total + partial).astype(np.float32)
