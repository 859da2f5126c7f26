"""Average pooling that does not count the padding, in Numba on the CPU: windows at the border are shorter."""

from numba import njit, prange

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


def out_length(w):
    return (w.length + 2 * w.padding - w.window) // w.stride + 1


@op(
    axes={"rows": Axis(typical=1024), "length": Axis(min=1, max=2**24, typical=512)},
    attributes={
        "window": Attribute(4, (2, 3, 4)),
        "stride": Attribute(2, (1, 2, 4)),
        "padding": Attribute(1, (0, 1)),
    },
    derived={"out_length": out_length},
    require=lambda w: w.length + 2 * w.padding >= w.window,
    inputs={"x": Tensor("rows", "length")},
    outputs={"out": Tensor("rows", "out_length")},
    independent="rows",
    operations=lambda w: w.rows * out_length(w) * w.window,
)
def avg_pool1d(x, *, window, stride, padding):
    """The mean of the elements of each window that lie inside the row."""
    from torch.nn.functional import avg_pool1d

    return avg_pool1d(x[:, None], window, stride, padding, count_include_pad=False)[:, 0]


@njit(parallel=True)
def _pool(x, out, window, stride, padding):
    for row in prange(out.shape[0]):
        for o in range(out.shape[1]):
            first = max(0, o * stride - padding)
            last = min(x.shape[1], o * stride - padding + window)
            total = 0.0
            for i in range(first, last):
                total += load(x, (row, i))
            store(out, (row, o), total / (last - first))


@kernel("avg_pool1d")
def honest(x, *, window, stride, padding, out):
    _pool(*arrays(x, out), window, stride, padding)
