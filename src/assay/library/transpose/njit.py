"""Transposition in Numba on the CPU, one thread, in tiles that stay in the first-level cache."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays

TILE = 32


def tiles(x, out):
    rows, cols = x.shape
    for t in prange((rows + TILE - 1) // TILE):
        for left in range(0, cols, TILE):
            for col in range(left, min(left + TILE, cols)):
                for row in range(t * TILE, min(t * TILE + TILE, rows)):
                    out[col, row] = x[row, col]


_transpose = njit(tiles)


@kernel("transpose")
def transpose(x, *, out):
    _transpose(*arrays(x, out))
