"""Shared memory is used a second time without waiting for those who still read it: right nearly
always, until one warp is late."""

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "sanitizer"
NEEDS = "sanitizer"
TOOL = "racecheck"
WORKLOAD = "rows=4,cols=1000,dtype=fp32"
source = Source("race_unnoticed.cu")


@kernel("mean_var", variant="wrong")
def wrong(x, *, out, var):
    source["mean_var<false>"](x.shape[0], 256, x, out, var, x.shape[1])


@kernel("mean_var", variant="fixed")
def fixed(x, *, out, var):
    source["mean_var<true>"](x.shape[0], 256, x, out, var, x.shape[1])
