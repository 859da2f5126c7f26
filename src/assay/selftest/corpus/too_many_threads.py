"""Asks for 2048 threads in a block, which no device grants, and does not look at the error: nothing
runs, nothing is said."""

import contextlib

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "unwritten"
NEEDS = "gpu"
source = Source("too_many_threads.cu")


def run(x, out, threads):
    with contextlib.suppress(Exception):
        source["silu"](cdiv(x.numel(), threads), threads, x, out, x.numel())


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    run(x, out, 2048)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    run(x, out, 1024)
