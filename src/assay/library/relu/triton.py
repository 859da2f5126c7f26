"""ReLU in Triton: one program per BLOCK elements."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _relu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64-bit: n may exceed 2**31
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


@triton.jit
def _relu_backward(dy, x, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(dy + i, mask=i < n)
    v = tl.load(x + i, mask=i < n)
    tl.store(dx + i, tl.where(v <= 0, 0.0, g), mask=i < n)  # NaN is not ≤ 0


@kernel(
    "relu",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def relu(x, *, out, BLOCK=1024, num_warps=4):
    _relu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK, num_warps=num_warps)


@kernel(
    "relu_backward",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def relu_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _relu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), BLOCK, num_warps=num_warps)
