"""Transposition in Triton in tiles of 256 bytes a row, turned by the compiler in shared memory, without masks where the
tiles are whole."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _transpose(x, out, rows, cols, stride, TILE: tl.constexpr, ALONG: tl.constexpr, WHOLE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)  # 64-bit offsets: the matrix may exceed 2**31 elements
    if ALONG:  # neighbouring programs have neighbouring tiles of a row of x
        down, across = pid // tl.cdiv(cols, TILE), pid % tl.cdiv(cols, TILE)
    else:  # of a column of x, which is a row of out
        down, across = pid % tl.cdiv(rows, TILE), pid // tl.cdiv(rows, TILE)
    row, col = down * TILE + tl.arange(0, TILE), across * TILE + tl.arange(0, TILE)
    source, target = x + row[:, None] * stride + col[None, :], out + col[:, None] * rows + row[None, :]
    if WHOLE:
        tl.store(target, tl.trans(tl.load(source)))
    else:
        inside = (row[:, None] < rows) & (col[None, :] < cols)
        tl.store(target, tl.trans(tl.load(source, mask=inside)), mask=tl.trans(inside))


@kernel(
    "transpose",
    tune={"line": [64, 128, 256], "order": ["auto", "along", "down"], "num_warps": [2, 4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def transpose(x, *, out, line=256, order="auto", num_warps=8):
    """A row of a tile has `line` bytes: 128 elements of 16 bits, 64 of fp32. Neighbouring programs go along the rows
    of x or down its columns: down for 16 bits, along for fp32, as measured."""
    (rows, cols), tile = x.shape, line // x.element_size()
    along = x.element_size() == 4 if order == "auto" else order == "along"
    whole = rows % tile == 0 and cols % tile == 0
    tiles = triton.cdiv(rows, tile) * triton.cdiv(cols, tile)
    _transpose[(tiles,)](x, out, rows, cols, x.stride(0), tile, along, whole, num_warps=num_warps)
