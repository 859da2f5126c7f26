"""A row waits in a shared buffer of 1024 columns whose index wraps around: of longer rows only the last
1024 exponentials are still there."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "values"
THREADS = 8


@cuda.jit
def _softmax(x, y, kept):
    row, t, cols = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    waiting = cuda.shared.array(1024, float32)
    parts = cuda.shared.array(THREADS, float32)
    top, total = float32(-np.inf), 0.0
    for c in range(cols):
        top = max(top, x[row, c])
    for c in range(t, cols, THREADS):
        waiting[c % 1024] = math.exp(x[row, c] - top)
        total += math.exp(x[row, c] - top)
    parts[t] = total
    cuda.syncthreads()
    total = 0.0
    for k in range(THREADS):
        total += parts[k]
    for c in range(t, cols, THREADS):
        e = waiting[c % 1024] if cols <= kept else math.exp(x[row, c] - top)
        y[row, c] = e / total


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    launch(_softmax, x.shape[0], THREADS, x, out, x.shape[1])


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    launch(_softmax, x.shape[0], THREADS, x, out, 1024)
