"""The last step joins 16 warps, as many as the block had before it grew to 1024 threads: rows of more than 512
columns lose part of their sum."""

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "values"
NEEDS = "gpu"
source = Source("second_half_of_warps.cu")


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    if x.shape[0]:
        source["distance<16>"](x.shape[0], 1024, x, y, out, x.shape[1])


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    if x.shape[0]:
        source["distance<32>"](x.shape[0], 1024, x, y, out, x.shape[1])
