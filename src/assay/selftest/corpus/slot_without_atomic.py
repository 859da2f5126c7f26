"""Four lanes of a warp add to the same slot of shared memory with `+=`: one of them wins, the others' share is
lost."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "values or stale"
NEEDS = "gpu"
source = Source("slot_without_atomic.cu")


def run(x, out, parts, atomic):
    blocks = max(1, min(256, cdiv(x.numel(), 4096)))
    source[f"sum<{atomic}>"](blocks, 256, x, parts, x.numel())
    source["sum<true>"](1, 256, parts, out, blocks)


@kernel("sum", variant="wrong", scratch={"parts": ("fp32", 256)})
def wrong(x, *, out, parts):
    run(x, out, parts, "false")


@kernel("sum", variant="fixed", scratch={"parts": ("fp32", 256)})
def fixed(x, *, out, parts):
    run(x, out, parts, "true")
