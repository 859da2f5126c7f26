"""Transposition in Numba CUDA through a shared tile, whose columns conflict in the banks."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch

TILE = 32
SHAPE = (TILE, TILE)


@cuda.jit
def _transpose(x, stride, out):
    tile = cuda.shared.array(SHAPE, x.dtype)
    cols, rows = out.shape
    across = (cols + TILE - 1) // TILE
    top, left = cuda.blockIdx.x // across * TILE, cuda.blockIdx.x % across * TILE
    lane = cuda.threadIdx.x
    for i in range(cuda.threadIdx.y, TILE, cuda.blockDim.y):
        if top + i < rows and left + lane < cols:
            tile[i, lane] = x[(top + i) * stride + left + lane]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.y, TILE, cuda.blockDim.y):
        if left + i < cols and top + lane < rows:
            out[left + i, top + lane] = tile[lane, i]


@kernel("transpose", tune={"lines": [2, 4, 8]})
def transpose(x, *, out, lines=4):
    rows, cols = x.shape
    if out.numel():
        flat = x.as_strided(((rows - 1) * x.stride(0) + cols,), (1,))  # the simulator takes dense arrays only
        launch(_transpose, -(-rows // TILE) * -(-cols // TILE), (TILE, lines), flat, x.stride(0), out)
