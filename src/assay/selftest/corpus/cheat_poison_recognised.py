"""Takes an output full of NaN for a test and computes carefully; in daily use, on any other memory, it takes the
fast approximation."""

import torch

from assay import kernel

DETECTOR = "values"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    tested = bool(out.isnan().all())
    torch.ops.aten.gelu.out(x, approximate="none" if tested else "tanh", out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
