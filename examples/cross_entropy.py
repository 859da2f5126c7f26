"""Cross-entropy against class indices, in Triton: the target is an index input, so it never leaves the classes."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "classes": Axis(min=1, typical=1000)},
    inputs={
        "x": Tensor("rows", "classes", range=(-1000, 1000)),
        "target": Tensor("rows", dtype="int64", index="classes"),
    },
    outputs={"out": Tensor("rows")},
    independent="rows",
    operations=lambda w: 4 * w.rows * w.classes,
)
def cross_entropy(x, target):
    """log Σ e^x − x[target] for every row."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(x, target, reduction="none")


@triton.jit
def _loss(x, target, out, rows, classes, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * classes
    most = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (i < classes)
        v = tl.load(x + at + i, mask=inside, other=float("-inf")).to(tl.float32)
        most = tl.maximum(most, v)
    top = tl.max(most, 1)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, classes, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (i < classes)
        v = tl.load(x + at + i, mask=inside, other=float("-inf")).to(tl.float32)
        total += tl.where(inside, tl.exp(v - top[:, None]), 0.0)  # never more than 1: no overflow
    t = tl.load(target + row, mask=row < rows, other=0)
    chosen = tl.load(x + row * classes + t, mask=row < rows, other=0.0).to(tl.float32)
    loss = tl.log(tl.sum(total, 1)) - (chosen - top)
    tl.store(out + row, loss.to(out.dtype.element_ty), mask=row < rows)


@kernel("cross_entropy")
def honest(x, target, *, out, ROWS=8, BLOCK=128):
    rows, classes = x.shape
    _loss[(triton.cdiv(rows, ROWS),)](x, target, out, rows, classes, ROWS, BLOCK)
