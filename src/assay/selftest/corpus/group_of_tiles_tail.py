"""Tiles are visited in groups of four rows for the cache's sake; a last group with fewer is counted as
four, and tiles go missing once both axes have several."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unwritten"


@triton.jit
def _transpose(x, out, rows, cols, stride, COUNTED: tl.constexpr, TILE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    down, across = tl.cdiv(rows, TILE), tl.cdiv(cols, TILE)
    first = pid // (4 * across) * 4
    group = tl.minimum(down - first, 4) if COUNTED else 4
    inner = pid % (4 * across)
    r = (first + inner % group) * TILE + tl.arange(0, TILE)
    c = inner // group * TILE + tl.arange(0, TILE)
    v = tl.load(x + r[:, None] * stride + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


def run(x, out, counted):
    rows, cols = x.shape
    if out.numel():
        tiles = triton.cdiv(rows, 128) * triton.cdiv(cols, 128)
        _transpose[(tiles,)](x, out, rows, cols, x.stride(0), counted, 128)


@kernel("transpose", variant="wrong")
def wrong(x, *, out):
    run(x, out, False)


@kernel("transpose", variant="fixed")
def fixed(x, *, out):
    run(x, out, True)
