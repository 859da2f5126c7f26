"""C = A·B for square matrices, in Triton: one program per tile of C, float32 accumulation, every edge masked."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(min=1, typical=1024)},
    # Narrow enough that a sum of a few thousand products stays finite in fp16.
    inputs={"a": Tensor("n", "n", range=(-4, 4)), "b": Tensor("n", "n", range=(-4, 4))},
    outputs={"out": Tensor("n", "n")},
    operations=lambda w: 2 * w.n**3,
)
def matmul_square(a, b):
    """The product of two n×n matrices."""
    return a @ b


@triton.jit
def _matmul(a, b, c, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * n + k[None, :], mask=(row[:, None] < n) & (k[None, :] < n), other=0.0)
        right = tl.load(b + k[:, None] * n + col[None, :], mask=(k[:, None] < n) & (col[None, :] < n), other=0.0)
        # The default precision is TF32 on a GPU: 10 bits of fraction where fp32 has 23.
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (row[:, None] < n) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=inside)


@kernel("matmul_square", tune={"BLOCK": [32, 64]})
def honest(a, b, *, out, BLOCK=32):
    n = a.shape[0]
    tiles = triton.cdiv(n, BLOCK)
    _matmul[(tiles, tiles)](a, b, out, n, BLOCK)
