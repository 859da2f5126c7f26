"""int4 weights, two in a byte, times a scale per row, in Triton: a packed tensor is an ordinary uint8 one."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "pairs": Axis(min=1, typical=2048)},
    inputs={
        "packed": Tensor("rows", "pairs", dtype="uint8", range=(0, 255)),
        "scale": Tensor("rows", range=(0, 100), specials=()),
    },
    derived={"cols": lambda w: 2 * w.pairs},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 2 * w.rows * w.pairs,
)
def int4_packed(packed, scale):
    """The low four bits first, then the high ones, each a number from −8 to 7, times the row's scale."""
    import torch

    wide = packed.long()
    both = torch.stack([wide & 15, wide >> 4], -1).flatten(1)
    return ((both ^ 8) - 8) * scale[:, None]


@triton.jit
def _unpack(packed, scale, out, rows, pairs, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    inside = (row[:, None] < rows) & (col < 2 * pairs)
    byte = tl.load(packed + row[:, None] * pairs + col // 2, mask=inside, other=0).to(tl.int32)
    nibble = (byte >> (4 * (col % 2)).to(tl.int32)) & 15
    value = ((nibble ^ 8) - 8).to(tl.float32)  # the sign bit is the fourth
    s = tl.load(scale + row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(out + row[:, None] * 2 * pairs + col, (value * s[:, None]).to(out.dtype.element_ty), mask=inside)


@kernel("int4_packed")
def honest(packed, scale, *, out, ROWS=16, COLS=128):
    rows, pairs = packed.shape
    _unpack[(triton.cdiv(rows, ROWS), triton.cdiv(2 * pairs, COLS))](packed, scale, out, rows, pairs, ROWS, COLS)
