"""The index is computed in float32, as a floor division by reciprocal does it: past 2²⁴ every second element is taken
for its neighbour."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "unwritten"
NEEDS = "gpu"
DTYPE = "fp32"
source = Source("index_in_float32.cu")


def run(x, out, index):
    source[f"relu<{index}>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@kernel("relu", variant="wrong")
def wrong(x, *, out):
    run(x, out, "float")


@kernel("relu", variant="fixed")
def fixed(x, *, out):
    run(x, out, "long long")
