"""GELU in PyTorch: aten's overloads that write into a given tensor."""

import torch

from assay import kernel


@kernel("gelu")
def gelu(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu_tanh")
def gelu_tanh(x, *, out):
    torch.ops.aten.gelu.out(x, approximate="tanh", out=out)


@kernel("gelu_backward")
def gelu_backward(dy, x, *, out):
    torch.ops.aten.gelu_backward.grad_input(dy, x, grad_input=out)


@kernel("gelu_tanh_backward")
def gelu_tanh_backward(dy, x, *, out):
    torch.ops.aten.gelu_backward.grad_input(dy, x, approximate="tanh", grad_input=out)
