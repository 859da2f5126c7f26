"""Transposition in CUDA C++, straight: coalesced loads, scattered stores."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")


@kernel("transpose", tune={"tile": [32, 64], "lines": [4, 8, 16]})
def transpose(x, *, out, tile=32, lines=8):
    rows, cols = x.shape
    tiles = cdiv(rows, tile) * cdiv(cols, tile)
    source[f"naive<{ctype(x)}, {tile}>"](tiles, (tile, lines), x, out, rows, cols, x.stride(0))
