"""Convolution in CUDA C++: input tile, halo and weights in shared memory, 32 outputs per thread."""

import numpy as np

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")
ROWS, CHANNELS = 4, 8  # as in kernel.cu


def launch(inner, x, weight, bias, out, stride, padding, warps, products):
    (n, c, h, w), (k, _, r, s), (oh, ow) = x.shape, weight.shape, out.shape[2:]
    # A tile is 32·ROWS pixels, in the shape that covers the image with the fewest tiles.
    columns = min((32, 16, 8), key=lambda wide: cdiv(ow, wide) * cdiv(oh, 32 // wide * ROWS))
    staged_rows, pitch = (32 // columns * ROWS - 1) * stride + r, (columns - 1) * stride + s
    if columns < 32:  # tile rows that a warp reads together begin in different banks
        pitch += (columns // ROWS - pitch) % 8
    warps = min(warps, cdiv(k, CHANNELS))
    floats = r * s * (warps * CHANNELS + 4) + staged_rows * pitch  # per input channel
    chunk = max(1, min(c, products // (r * s), 48 * 1024 // (4 * floats)))
    tiles = n * cdiv(k, warps * CHANNELS) * cdiv(oh, 32 // columns * ROWS) * cdiv(ow, columns)
    source[f"conv2d<{ctype(x)}, {r}, {stride}, {inner}>"](
        min(tiles, 2**31 - 1), 32 * warps, x, weight, bias, out, n, c, h, w, k, oh, ow,
        *map(np.int32, (s, padding, columns, pitch, chunk)), shared=4 * chunk * floats,
    )  # fmt: skip


@kernel("conv2d", tune={"warps": [2, 4, 8], "products": [36, 72, 144]})
def conv2d(x, weight, bias, *, stride, padding, out, warps=8, products=72):
    launch("Plain", x, weight, bias, out, stride, padding, warps, products)
