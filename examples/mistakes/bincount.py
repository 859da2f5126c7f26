"""The grid is fixed and no thread takes a second index: what lies beyond the grid is not counted."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch


@cuda.jit
def _copy(counts, out):
    for i in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        out[i] = counts[i]


@cuda.jit
def _count(index, out):
    i = cuda.grid(1)
    if i < index.shape[0]:  # Wrong: a loop with the grid's size as its step.
        cuda.atomic.add(out, index[i], 1)


@kernel("../bincount.py:bincount")
def no_second_index(counts, index, *, out, blocks=4, threads=16):
    launch(_copy, blocks, threads, counts, out)
    if index.numel():
        launch(_count, blocks, threads, index, out)
