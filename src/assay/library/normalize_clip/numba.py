"""Normalise and clip in Numba CUDA: one element per thread."""

from numba import cuda
from numpy import float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _normalize_clip(x, y, mean, std, low, high):
    i = cuda.grid(1)
    if i < x.size:
        v = (widen(x[i]) - mean) / std
        y[i] = rounded(y, low if v < low else high if v > high else v)  # NaN fails both tests


@kernel("normalize_clip", tune={"threads": [64, 128, 256]})
def normalize_clip(x, *, mean, std, low, high, out, threads=128):
    blocks = -(-x.numel() // threads)
    launch(_normalize_clip, blocks, threads, x, out, float32(mean), float32(std), float32(low), float32(high))
