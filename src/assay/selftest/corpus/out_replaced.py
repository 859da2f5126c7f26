"""`out.data = …` gives the caller's tensor other memory: everybody who holds a view of it, or its
address, still sees the old one."""

import torch

from assay import kernel

DETECTOR = "unwritten"


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    out.data = torch.nn.functional.silu(x)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    out.data[:] = torch.nn.functional.silu(x)
