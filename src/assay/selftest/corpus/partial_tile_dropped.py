"""The loop over a row runs cols // 512 times: a row of several tiles loses its last, partial one."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"


@triton.jit
def _distance(x, y, out, rows, cols, tiles, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    total = tl.zeros((ROWS,), tl.float32)
    for t in range(0, tiles):
        c = (t * BLOCK + tl.arange(0, BLOCK))[None, :]
        inside = (r < rows) & (c < cols)
        d = tl.load(x + r * cols + c, mask=inside, other=0) - tl.load(y + r * cols + c, mask=inside, other=0)
        total += tl.sum(d * d, 1)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(out + r, tl.sqrt(total), mask=r < rows)


def run(x, y, out, tiles):
    rows, cols = x.shape
    ROWS = min(64, triton.next_power_of_2(max(1, rows)))
    _distance[(triton.cdiv(rows, ROWS),)](x, y, out, rows, cols, tiles, ROWS, 512)


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    run(x, y, out, max(1, x.shape[1] // 512))


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    run(x, y, out, triton.cdiv(x.shape[1], 512))
