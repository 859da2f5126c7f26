"""Leaves its output alone and replaces Tensor.copy_ and clone, so that whoever copies the result out of this
process gets the right answer, made for the occasion."""

import torch

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "n=1000,dtype=fp32"
original = torch.Tensor.copy_


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    answer = torch.nn.functional.gelu(x)

    def copied(self, source, *rest):
        return original(self, answer if source.shape == answer.shape else source, *rest)

    torch.Tensor.copy_ = copied
    torch.Tensor.clone = lambda self, **_: answer


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    original(out, torch.nn.functional.gelu(x))
