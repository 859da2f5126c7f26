"""An index is multiplied by the row length twice: the writes land terabytes away, and the device gives up."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "launch"
NEEDS = "gpu"
WORKLOAD = "rows=64,cols=1000,dtype=fp32"
source = Source("illegal_access.cu")


@kernel("col_scale", variant="wrong")
def wrong(x, scale, *, out):
    source["scale"](cdiv(x.numel(), 256), 256, x, scale, out, x.numel(), x.shape[1], 1 << 30)


@kernel("col_scale", variant="fixed")
def fixed(x, scale, *, out):
    source["scale"](cdiv(x.numel(), 256), 256, x, scale, out, x.numel(), x.shape[1], 1)
