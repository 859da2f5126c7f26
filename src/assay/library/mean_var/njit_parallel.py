"""Mean and variance in Numba on the CPU, all threads, each with rows of its own."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.mean_var.njit import loop

_mean_var = njit(parallel=True)(loop)


@kernel("mean_var")
def mean_var(x, *, out, var):
    _mean_var(*arrays(x, out, var))
