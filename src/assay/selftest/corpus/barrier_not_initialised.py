"""Threads may wait at an mbarrier before the first thread has initialised it: they then wait for what an earlier block
left in its place, whose phase may be complete. The first thread is usually there first."""

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "race or launch or values or unstable"
NEEDS = "gpu"
DTYPE = "fp32"
source = Source("barrier_not_initialised.cu")


@kernel("relu", variant="wrong", dtypes=["fp32"])
def wrong(x, *, out):
    source["relu<false>"](-(-x.numel() // 1024), 256, x, out, x.numel())


@kernel("relu", variant="fixed", dtypes=["fp32"])
def fixed(x, *, out):
    source["relu<true>"](-(-x.numel() // 1024), 256, x, out, x.numel())
