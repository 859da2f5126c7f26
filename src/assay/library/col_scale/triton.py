"""Column scaling in Triton: one program per tile of BLOCK elements; narrow matrices get tall tiles."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _col_scale(x, scale, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(cols, COLS)
    r = tile // across * ROWS + tl.arange(0, ROWS)
    c = tile % across * COLS + tl.arange(0, COLS)
    i, inside = r[:, None] * cols + c[None, :], (r < rows)[:, None] & (c < cols)[None, :]
    factor = tl.load(scale + c, mask=c < cols).to(tl.float32)
    v = tl.load(x + i, mask=inside).to(tl.float32)
    tl.store(y + i, (v * factor[None, :]).to(y.dtype.element_ty), mask=inside)


@kernel(
    "col_scale",
    tune={"BLOCK": [1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def col_scale(x, scale, *, out, BLOCK=2048, num_warps=4):
    rows, cols = x.shape
    COLS = min(BLOCK, triton.next_power_of_2(max(cols, 1)))
    ROWS = BLOCK // COLS
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(cols, COLS)
    _col_scale[(tiles,)](x, scale, out, rows, cols, ROWS, COLS, num_warps=num_warps)
