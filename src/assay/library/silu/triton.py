"""SiLU in Triton: one program per BLOCK elements, arithmetic in float32."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _silu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64-bit: n may exceed 2**31
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, (v / (1 + tl.exp(-v))).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def _silu_backward(dy, x, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(dy + i, mask=i < n).to(tl.float32)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    sigma = 1 / (1 + tl.exp(-v))
    tl.store(dx + i, (g * sigma * (1 + v * (1 - sigma))).to(dx.dtype.element_ty), mask=i < n)


@kernel(
    "silu",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def silu(x, *, out, BLOCK=1024, num_warps=4):
    _silu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK, num_warps=num_warps)


@kernel(
    "silu_backward",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def silu_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _silu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), BLOCK, num_warps=num_warps)
