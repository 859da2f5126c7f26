"""Transposition in CUDA C++ through a shared tile, whose columns conflict in the banks."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")


@kernel("transpose", tune={"tile": [32, 64], "lines": [4, 8, 16]})
def transpose(x, *, out, tile=32, lines=8):
    rows, cols = x.shape
    tiles = cdiv(rows, tile) * cdiv(cols, tile)
    source[f"tiled<{ctype(x)}, {tile}, 0>"](tiles, (tile, lines), x, out, rows, cols, x.stride(0))
