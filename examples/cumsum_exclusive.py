"""Exclusive prefix sums, in Numba CUDA: a thread per row, each result without its own element."""

from numba import cuda, float32

from assay import Axis, Tensor, kernel, op
from assay.backends.numba import launch, rounded, widen


@op(
    axes={"rows": Axis(typical=65536), "cols": Axis(min=1, typical=128)},
    inputs={"x": Tensor("rows", "cols", range=(-10, 10), specials=())},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def cumsum_exclusive(x):
    """out[r, c] = Σ x[r, 0…c − 1]; 0 for the first."""
    from torch.nn.functional import pad

    return pad(x, (1, 0))[:, :-1].cumsum(-1)


@cuda.jit
def _scan(x, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total, lost = float32(0), float32(0)
        for col in range(x.shape[1]):
            out[row, col] = rounded(out, total)
            # Kahan's sum: one float32 after the other would lose a bit with every doubling of the row.
            term = widen(x[row, col]) - lost
            now = total + term
            lost = (now - total) - term
            total = now


@kernel("cumsum_exclusive")
def honest(x, *, out, threads=32):
    launch(_scan, -(-x.shape[0] // threads), threads, x, out)
