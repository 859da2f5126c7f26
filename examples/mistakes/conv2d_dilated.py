"""The padding stays 1 when the dilation grows: the filter is no longer centred."""

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("conv2d_dilated.cu")


@kernel("../conv2d_dilated.py:conv2d_dilated", backend="cuda", variant="padding_of_one")
def in_cuda(x, weight, *, dilation, out):
    (n, c, h, w), k = x.shape, weight.shape[0]
    source[f"conv2d_dilated<{ctype(x)}>"](cdiv(n * k * h * w, 256), 256, x, weight, out, n, c, h, w, k, dilation)


@njit(parallel=True)
def _conv(x, weight, out, dilation):
    _, channels, height, width = x.shape
    for place in prange(out.shape[0] * out.shape[1]):
        n, k = place // out.shape[1], place % out.shape[1]
        for y in range(height):
            for z in range(width):
                total = 0.0
                for i in range(3):
                    for j in range(3):
                        row, col = y + i * dilation - 1, z + j * dilation - 1  # Wrong: − dilation.
                        if 0 <= row < height and 0 <= col < width:
                            for c in range(channels):
                                total += load(x, (n, c, row, col)) * load(weight, (k, c, i, j))
                store(out, (n, k, y, z), total)


@kernel("../conv2d_dilated.py:conv2d_dilated", backend="njit", variant="padding_of_one")
def in_numba(x, weight, *, dilation, out):
    _conv(*arrays(x, weight, out), dilation)
