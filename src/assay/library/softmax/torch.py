"""Softmax in PyTorch: aten's overload that writes into a given tensor."""

import torch

from assay import kernel


@kernel("softmax")
def softmax(x, *, out):
    torch.ops.aten._softmax.out(x, -1, False, out=out)
