"""Mean and variance in Triton: one program per row, two passes per chunk, chunks joined by Chan's formula."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _mean_var(x, mean, var, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mu, squares = 0.0, 0.0  # of the columns before start
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        count = tl.minimum(cols - start, BLOCK)
        chunk = tl.sum(v) / count
        deviation = tl.where(i < cols, v - chunk, 0.0)
        apart, share = chunk - mu, count / (start + count)
        mu += apart * share
        squares += tl.sum(deviation * deviation) + apart * apart * start * share
    tl.store(mean + row, mu.to(mean.dtype.element_ty))
    tl.store(var + row, (squares / cols).to(var.dtype.element_ty))


@kernel("mean_var", tune={"BLOCK": [1024, 2048, 4096, 8192], "num_warps": [2, 4, 8]})
def mean_var(x, *, out, var, BLOCK=4096, num_warps=4):
    rows, cols = x.shape
    BLOCK = min(BLOCK, triton.next_power_of_2(cols))
    _mean_var[(rows,)](x, out, var, cols, BLOCK, num_warps=num_warps)
