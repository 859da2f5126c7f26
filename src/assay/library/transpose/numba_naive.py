"""Transposition in Numba CUDA, straight: coalesced loads, scattered stores."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch

TILE = 32


@cuda.jit
def _transpose(x, stride, out):
    cols, rows = out.shape
    across = (cols + TILE - 1) // TILE
    top, left = cuda.blockIdx.x // across * TILE, cuda.blockIdx.x % across * TILE
    col = left + cuda.threadIdx.x
    for row in range(top + cuda.threadIdx.y, min(top + TILE, rows), cuda.blockDim.y):
        if col < cols:
            out[col, row] = x[row * stride + col]


@kernel("transpose", tune={"lines": [2, 4, 8]})
def transpose(x, *, out, lines=4):
    rows, cols = x.shape
    if out.numel():
        flat = x.as_strided(((rows - 1) * x.stride(0) + cols,), (1,))  # the simulator takes dense arrays only
        launch(_transpose, -(-rows // TILE) * -(-cols // TILE), (TILE, lines), flat, x.stride(0), out)
