"""Returns a view of its input with other strides: no element moves, and every later reader pays for it."""

from assay import kernel

VERB = "bench"
DETECTOR = "alias"
WORKLOAD = "rows=64,cols=96,dtype=fp32"


@kernel("transpose", variant="wrong", backend="torch", returns=True)
def wrong(x):
    return x.t()


@kernel("transpose", variant="fixed", backend="torch", returns=True)
def fixed(x):
    return x.t().contiguous()
