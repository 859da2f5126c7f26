"""Each product is formed from the stored one, which was rounded to 16 bits: errors pile up along the row."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _scan(x, out):
    for row in prange(x.shape[0]):
        store(out, (row, 0), load(x, (row, 0)))
        for col in range(1, x.shape[1]):
            # Wrong: out holds bf16.
            store(out, (row, col), load(out, (row, col - 1)) * load(x, (row, col)))


@kernel("../cumprod.py:cumprod", dtypes=["bf16"])
def rounds_at_every_step(x, *, out):
    _scan(*arrays(x, out))
