"""A block adds its part to what the block before it left behind, as if blocks ran one after the other."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "nonfinite"
NEEDS = "gpu"
source = Source("chained_blocks.cu")


def run(x, out, running, chained):
    n = x.numel()
    share = max(1024, cdiv(n, 64))
    blocks = max(1, cdiv(n, share))
    source[f"sum<{chained}>"](blocks, 256, x, running, n, share)
    if chained == "true":
        out.copy_(running[blocks - 1])
    else:
        source["sum<false>"](1, 256, running, out, blocks, blocks)


@kernel("sum", variant="wrong", scratch={"running": ("fp32", 64)})
def wrong(x, *, out, running):
    run(x, out, running, "true")


@kernel("sum", variant="fixed", scratch={"running": ("fp32", 64)})
def fixed(x, *, out, running):
    run(x, out, running, "false")
