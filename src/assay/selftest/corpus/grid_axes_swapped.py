"""The grid counts tiles of rows along x, the kernel takes x for the columns: right while both have the
same number of tiles."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "unwritten"


@cuda.jit
def _row_scale(x, scale, out):
    first_row, first_col = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    for r in range(first_row + cuda.threadIdx.y, min(first_row + 64, x.shape[0]), cuda.blockDim.y):
        for c in range(first_col + cuda.threadIdx.x, min(first_col + 64, x.shape[1]), cuda.blockDim.x):
            out[r, c] = x[r, c] * scale[r]


def tiles(length):
    return -(-length // 64)


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    launch(_row_scale, (tiles(x.shape[0]), tiles(x.shape[1])), (4, 2), x, scale, out)


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    launch(_row_scale, (tiles(x.shape[1]), tiles(x.shape[0])), (4, 2), x, scale, out)
