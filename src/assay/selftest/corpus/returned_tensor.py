"""Returns a new tensor instead of writing into the one it was given."""

import torch

from assay import kernel

DETECTOR = "returned"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    return torch.nn.functional.gelu(x)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
