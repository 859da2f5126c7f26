"""The absolute value is forgotten: right for x ≥ 0, infinite at −1."""

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("softsign.cu")


@kernel("../softsign.py:softsign", backend="cuda", variant="without_absolute_value")
def in_cuda(x, *, out):
    source[f"softsign<{ctype(x)}>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@njit(parallel=True, error_model="numpy")
def _softsign(x, out):
    for i in prange(x.size):
        v = load(x, i)
        store(out, i, v / (1 + v))  # Wrong: 1 + |v|.


@kernel("../softsign.py:softsign", backend="njit", variant="without_absolute_value")
def in_numba(x, *, out):
    _softsign(*arrays(x, out))
