"""x / (1 + |x|), in CUDA C++ (softsign.cu) and in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("softsign.cu")


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 3 * w.n,
)
def softsign(x):
    """x / (1 + |x|)."""
    from torch.nn.functional import softsign

    return softsign(x)


@kernel("softsign", backend="cuda", variant="honest")
def in_cuda(x, *, out):
    source[f"softsign<{ctype(x)}>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@njit(parallel=True)
def _softsign(x, out):
    for i in prange(x.size):
        v = load(x, i)
        store(out, i, v / (1 + abs(v)))


@kernel("softsign", backend="njit", variant="honest")
def in_numba(x, *, out):
    _softsign(*arrays(x, out))
