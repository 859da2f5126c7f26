"""LayerNorm in Numba CUDA: one block per row, sums joined through shared memory; the row is read three times."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit(device=True)
def _block_sum(value, shared):
    t = cuda.threadIdx.x
    cuda.syncthreads()  # the last call's readers are done
    shared[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    return shared[0]


@cuda.jit
def _layernorm(x, weight, bias, y, mean, rstd, eps):
    """Tensors that are absent come empty."""
    r, t, threads, cols = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x, x.shape[1]
    shared = cuda.shared.array(256, float32)
    total = float32(0)
    for c in range(t, cols, threads):
        total += widen(x[r, c])
    mu = _block_sum(total, shared) / float32(cols)
    squares = float32(0)
    for c in range(t, cols, threads):
        d = widen(x[r, c]) - mu
        squares += d * d
    scale = float32(1) / math.sqrt(_block_sum(squares, shared) / float32(cols) + eps)
    for c in range(t, cols, threads):
        v = (widen(x[r, c]) - mu) * scale
        if weight.size:
            v *= widen(weight[c])
        if bias.size:
            v += widen(bias[c])
        y[r, c] = rounded(y, v)
    if t == 0:
        if mean.size:
            mean[r] = mu
        if rstd.size:
            rstd[r] = scale


@kernel("layernorm", tune={"threads": [32, 64, 128, 256]})
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None, threads=64):
    # Numba cannot pass None to a CUDA kernel.
    absent = out.view(-1)[:0]
    vectors = [absent if t is None else t for t in (weight, bias, mean, rstd)]
    launch(_layernorm, x.shape[0], threads, x, *vectors[:2], out, *vectors[2:], np.float32(eps))
