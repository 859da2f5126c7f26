"""A row is kept in shared memory, and nobody looks whether the launch was accepted: rows of more than 58,000
columns do not fit."""

import contextlib

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "unwritten"
NEEDS = "gpu"
source = Source("row_beyond_shared_memory.cu")


def run(x, out, longest):
    rows, cols = x.shape
    if not rows:
        return
    with contextlib.suppress(Exception):
        if cols <= longest:
            source["softmax<true>"](rows, 256, x, out, cols, x.stride(0), shared=4 * cols)
        else:
            source["softmax<false>"](rows, 1024, x, out, cols, x.stride(0))


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    run(x, out, x.shape[1])


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    run(x, out, 8192)
