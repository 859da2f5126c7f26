"""Clipping by comparisons that are false for NaN: bad data comes out as a harmless-looking lower bound."""

from numba import float32, njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite"


@njit
def _wrong(x, y, mean, std, low, high):
    for i in range(x.size):
        v = (x[i] - mean) / std
        v = v if v > low else low
        y[i] = v if v < high else high


@njit
def _fixed(x, y, mean, std, low, high):
    for i in range(x.size):
        v = (x[i] - mean) / std
        v = low if v < low else v
        y[i] = high if v > high else v


@kernel("normalize_clip", variant="wrong")
def wrong(x, *, mean, std, low, high, out):
    _wrong(*arrays(x, out), *map(float32, (mean, std, low, high)))


@kernel("normalize_clip", variant="fixed")
def fixed(x, *, mean, std, low, high, out):
    _fixed(*arrays(x, out), *map(float32, (mean, std, low, high)))
