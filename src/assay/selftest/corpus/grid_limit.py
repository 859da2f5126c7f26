"""One block per row, cut off at 65535 because the launch failed once with more: later rows are never
written."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "unwritten"


@njit
def _row_scale(x, scale, y, blocks):
    for row in range(blocks):
        for c in range(x.shape[1]):
            y[row, c] = x[row, c] * scale[row]


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    _row_scale(*arrays(x, scale, out), min(x.shape[0], 65535))


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    _row_scale(*arrays(x, scale, out), x.shape[0])
