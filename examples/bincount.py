"""Adds how often each index occurs to running counts, in Numba CUDA: atomic additions of integers."""

from numba import cuda

from assay import Axis, Tensor, kernel, op
from assay.backends.numba import launch


@op(
    axes={"bins": Axis(min=1, typical=1024), "n": Axis(typical=1048576)},
    inputs={
        "counts": Tensor("bins", dtype="int32", range=(0, 2**30)),
        "index": Tensor("n", dtype="int64", index="bins"),
    },
    outputs={"out": Tensor("bins", dtype="int32")},
    dtypes=("int32",),
    operations=lambda w: w.n,
)
def bincount(counts, index):
    """counts, and at each bin how many of the indices name it."""
    return counts + index.bincount(minlength=counts.numel())


@cuda.jit
def _copy(counts, out):
    for i in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        out[i] = counts[i]


@cuda.jit
def _count(index, out):
    for i in range(cuda.grid(1), index.shape[0], cuda.gridsize(1)):
        cuda.atomic.add(out, index[i], 1)


@kernel("bincount")
def honest(counts, index, *, out, blocks=4, threads=16):
    launch(_copy, blocks, threads, counts, out)
    if index.numel():
        launch(_count, blocks, threads, index, out)
