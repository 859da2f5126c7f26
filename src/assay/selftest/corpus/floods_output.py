"""A debug print per element, left in: right on ten elements, gigabytes of text on ten million."""

import torch

from assay import kernel

DETECTOR = "flood"
WORKLOAD = "n=100000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    for i, (v, y) in enumerate(zip(x.tolist(), out.tolist(), strict=True)):
        print(f"gelu: element {i} of {x.numel()}: {v} -> {y}")


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
