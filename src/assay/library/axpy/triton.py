"""axpy in Triton: one program per BLOCK elements, arithmetic in float32."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _axpy(x, y, z, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n).to(tl.float32)
    b = tl.load(y + i, mask=i < n).to(tl.float32)
    tl.store(z + i, (alpha * a + b).to(z.dtype.element_ty), mask=i < n)


@kernel(
    "axpy",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def axpy(x, y, *, alpha, out, BLOCK=1024, num_warps=4):
    n = x.numel()
    _axpy[(triton.cdiv(n, BLOCK),)](x, y, out, n, alpha, BLOCK, num_warps=num_warps)
