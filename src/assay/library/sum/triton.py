"""The sum in Triton, in two stages: up to `programs` programs leave a partial sum each, one adds them up."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _partial_sums(x, partial, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    p = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(p.to(tl.int64) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        if WHOLE:
            total += tl.load(x + i).to(tl.float32)
        else:
            total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(partial + p, tl.sum(total))


@triton.jit
def _add_up(partial, y, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partial + i, mask=i < count, other=0.0))
    tl.store(y, total.to(y.dtype.element_ty))


@kernel(
    "sum",
    scratch={"partial": ("fp32", 1024)},
    tune={"BLOCK": [2048, 4096, 8192, 16384], "num_warps": [4, 8, 16], "programs": [132, 264, 528, 1024]},
    fits="16 * 132 <= num_warps * programs <= 64 * 132 and BLOCK <= 2048 * num_warps",
    expects={"of": "_partial_sums", "spills": 0, "widest_global_load": 128, "max_registers": 64},
)
def sum(x, *, out, partial, BLOCK=8192, num_warps=8, programs=528):
    n = x.numel()
    count = min(triton.cdiv(n, BLOCK), programs)
    _partial_sums[(count,)](x, partial, n, BLOCK, n % BLOCK == 0, num_warps=num_warps)
    _add_up[(1,)](partial, out, count, 1024)
