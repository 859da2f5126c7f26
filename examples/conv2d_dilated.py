"""3×3 convolution with dilation that keeps the size, in CUDA C++ (conv2d_dilated.cu) and in Numba on the CPU."""

from numba import njit, prange

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("conv2d_dilated.cu")


@op(
    axes={
        "n": Axis(max=4096, typical=8),
        "c": Axis(min=1, max=4096, typical=32),
        "h": Axis(min=1, max=4096, typical=32),
        "w": Axis(min=1, max=4096, typical=32),
        "k": Axis(min=1, max=4096, typical=32),
    },
    attributes={"dilation": Attribute(2, (1, 2, 3))},
    inputs={
        "x": Tensor("n", "c", "h", "w", range=(-8, 8), specials=()),
        "weight": Tensor("k", "c", 3, 3, range=(-2, 2), specials=()),
    },
    outputs={"out": Tensor("n", "k", "h", "w")},
    independent="n",
    operations=lambda w: 18 * w.n * w.k * w.c * w.h * w.w,
)
def conv2d_dilated(x, weight, *, dilation):
    """Σ x[n, c, y + (i − 1)·dilation, x + (j − 1)·dilation]·weight[k, c, i, j], zeros around the image."""
    from torch.nn.functional import conv2d

    return conv2d(x, weight, padding=dilation, dilation=dilation)


@kernel("conv2d_dilated", backend="cuda", variant="honest")
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
                        row, col = y + (i - 1) * dilation, z + (j - 1) * dilation
                        if 0 <= row < height and 0 <= col < width:
                            for c in range(channels):
                                total += load(x, (n, c, row, col)) * load(weight, (k, c, i, j))
                store(out, (n, k, y, z), total)


@kernel("conv2d_dilated", backend="njit", variant="honest")
def in_numba(x, weight, *, dilation, out):
    _conv(*arrays(x, weight, out), dilation)
