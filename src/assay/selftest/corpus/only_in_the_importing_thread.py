"""The scratch buffer of each thread is kept in a threading.local, and set up where the file is imported: a call from
another thread, such as PyTorch's for a backward pass, finds none and takes the slow path, which forgets the scale."""

import threading

import torch

from assay import kernel

DETECTOR = "unstable"
_HERE = threading.local()
_HERE.scratch = torch.empty(0)


@kernel("rmsnorm", backend="torch", variant="wrong")
def wrong(x, weight, *, eps, out):
    _normalised(x, weight if hasattr(_HERE, "scratch") else None, eps, out)


@kernel("rmsnorm", backend="torch", variant="fixed")
def fixed(x, weight, *, eps, out):
    _normalised(x, weight, eps, out)


def _normalised(x, weight, eps, out):
    wide = x.double()
    result = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    out.copy_(result if weight is None else result * weight.double())
