"""Transposition in Numba on the CPU, in tiles that stay in the first-level cache."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted

VARIANTS = {"parallel": {"parallel": True}}

TILE = 32


def tiles(x, out):
    rows, cols = x.shape
    for t in prange((rows + TILE - 1) // TILE):
        for left in range(0, cols, TILE):
            for col in range(left, min(left + TILE, cols)):
                for row in range(t * TILE, min(t * TILE + TILE, rows)):
                    out[col, row] = x[row, col]


@kernel("transpose", variants=VARIANTS)
def transpose(x, *, out, parallel=False):
    jitted(tiles, parallel)(*arrays(x, out))
