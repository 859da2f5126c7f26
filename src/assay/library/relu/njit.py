"""ReLU and its backward pass in Numba on the CPU, one thread."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit
def _relu(x, y):
    for i in range(x.size):
        v = load(x, i)
        store(y, i, 0.0 if v <= 0.0 else v)  # NaN is not ≤ 0


@njit
def _relu_backward(dy, x, dx):
    for i in range(x.size):
        store(dx, i, 0.0 if load(x, i) <= 0.0 else load(dy, i))


@kernel("relu")
def relu(x, *, out):
    _relu(*arrays(x, out))


@kernel("relu_backward")
def relu_backward(dy, x, *, out):
    _relu_backward(*arrays(dy, x, out))
