"""GELU in Triton: one program per BLOCK elements, arithmetic in float32."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _tanh(x):
    # 1 − 2/(e²ˣ + 1): no overflow to NaN on either side, exact limits ±1.
    return 1 - 2 / (tl.exp(2 * x) + 1)


@triton.jit
def _gelu(x, y, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64-bit: n may exceed 2**31
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    if TANH:
        phi = 0.5 * (1 + _tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))
    else:
        phi = 0.5 * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(y + i, (v * phi).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def _gelu_backward(dy, x, dx, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    if TANH:
        t = _tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
        slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * v * v)
        slope = tl.where(tl.abs(v) > 1e4, tl.where(v > 0, 1.0, 0.0), slope)  # v³ overflows far out, where the slope is flat
    else:
        slope = 0.5 * (1 + tl.erf(v * 0.7071067811865476)) + v * tl.exp(-0.5 * v * v) * 0.3989422804014327
    g = tl.load(dy + i, mask=i < n).to(tl.float32)
    tl.store(dx + i, (g * slope).to(dx.dtype.element_ty), mask=i < n)


@kernel("gelu", tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]})
def gelu(x, *, out, BLOCK=1024, num_warps=4):
    _gelu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), False, BLOCK, num_warps=num_warps)


@kernel("gelu_tanh", tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]})
def gelu_tanh(x, *, out, BLOCK=1024, num_warps=4):
    _gelu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), True, BLOCK, num_warps=num_warps)


@kernel("gelu_backward", tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]})
def gelu_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _gelu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), False, BLOCK, num_warps=num_warps)


@kernel("gelu_tanh_backward", tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]})
def gelu_tanh_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _gelu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), True, BLOCK, num_warps=num_warps)
