"""The end of a reduction without barriers, since a warp runs in step: it did until 2017, and since then it only
usually does."""

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "sanitizer"
NEEDS = "sanitizer"
TOOL = "racecheck"
WORKLOAD = "rows=4,cols=1000,dtype=fp32"
source = Source("warp_synchronous.cu")


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    source["distance<false>"](x.shape[0], 64, x, y, out, x.shape[1])


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    source["distance<true>"](x.shape[0], 64, x, y, out, x.shape[1])
