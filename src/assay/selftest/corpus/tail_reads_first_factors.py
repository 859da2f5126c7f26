"""Eight columns a step; the loop over the columns left over counts from 0, and so do the factors it takes."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _col_scale(x, scale, y, from_whole):
    rows, cols = x.shape
    whole = cols // 8 * 8
    for r in range(rows):
        for start in range(0, whole, 8):
            for k in range(8):
                y[r, start + k] = x[r, start + k] * scale[start + k]
        for k in range(cols - whole):
            y[r, whole + k] = x[r, whole + k] * scale[whole + k if from_whole else k]


@kernel("col_scale", variant="wrong")
def wrong(x, scale, *, out):
    _col_scale(*arrays(x, scale, out), False)


@kernel("col_scale", variant="fixed")
def fixed(x, scale, *, out):
    _col_scale(*arrays(x, scale, out), True)
