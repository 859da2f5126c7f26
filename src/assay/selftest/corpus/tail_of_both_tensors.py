"""Eight elements at a time, with no tail: past the end it reads what lies behind the input and writes it behind the
output. ReLU of NaN is NaN, and of a large number that number, so the same byte behind both would hide it."""

from numba import njit

from assay import kernel

DETECTOR = "guard"


@njit
def _relu(x, y, whole):
    for i in range(0, x.size, 8):
        for j in range(8 if whole else min(8, x.size - i)):
            y[i + j] = max(x[i + j], 0)


@kernel("relu", backend="njit", variant="wrong", dtypes=["fp32"])
def wrong(x, *, out):
    _relu(x.view(-1).numpy(), out.view(-1).numpy(), True)


@kernel("relu", backend="njit", variant="fixed", dtypes=["fp32"])
def fixed(x, *, out):
    _relu(x.view(-1).numpy(), out.view(-1).numpy(), False)
