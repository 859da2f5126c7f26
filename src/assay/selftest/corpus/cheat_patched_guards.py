"""Writes over the memory behind its output and replaces the functions with which a harness in the same process
would see it: comparisons find nothing, copies are clean."""

import torch

from assay import kernel

DETECTOR = "guard"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    behind = out.as_strided((out.numel() + 64,), (1,))
    behind.fill_(0.0)
    torch.ops.aten.gelu.out(x, out=out)
    torch.equal = lambda *_: True
    torch.Tensor.nonzero = lambda self, **_: self.new_empty((0, self.dim()), dtype=torch.int64)
    torch.Tensor.__ne__ = torch.Tensor.ne = lambda self, other: torch.zeros(self.shape, dtype=torch.bool)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
