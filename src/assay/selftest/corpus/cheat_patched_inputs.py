"""Uses its input as work space and replaces torch.equal and clone, so that a harness in the same process finds it
unchanged."""

import torch

from assay import kernel

DETECTOR = "input"
WORKLOAD = "rows=33,cols=100,dtype=fp32"


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    torch.equal = lambda *_: True
    torch.Tensor.clone = lambda self, **_: self
    x -= x.amax(1, keepdim=True)
    torch.softmax(x, 1, out=out)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    torch.softmax(x, 1, out=out)
