"""Eight rows to a block and at most 65535 blocks, as the grid's second dimension allows, with no loop to further rows:
those after 524,280 are never written."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "unwritten"
ROWS, MOST = 8, 65535


def grid(rows):
    return min((rows + ROWS - 1) // ROWS, MOST)


@njit
def _row_scale(x, scale, y, blocks, step):
    for block in range(blocks):
        for first in range(block * ROWS, x.shape[0], step):
            for row in range(first, min(first + ROWS, x.shape[0])):
                for c in range(x.shape[1]):
                    y[row, c] = x[row, c] * scale[row]


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    rows = x.shape[0]
    _row_scale(*arrays(x, scale, out), grid(rows), max(1, rows))


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    rows = x.shape[0]
    _row_scale(*arrays(x, scale, out), grid(rows), max(1, grid(rows)) * ROWS)
