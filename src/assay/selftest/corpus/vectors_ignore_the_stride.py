"""Rows whose length and distance are multiples of four are read four elements at a time, through a view in which every
row follows the last one. Right for all dense rows, and for rows whose distance is odd."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite or overread"


@kernel("rmsnorm", backend="torch", variant="wrong")
def wrong(x, weight, *, eps, out):
    rows, cols = x.shape
    vectors = rows > 1 and cols % 4 == 0 and x.stride(0) % 4 == 0
    _normalised(torch.as_strided(x, (rows, cols), (cols, 1)) if vectors else x, weight, eps, out)


@kernel("rmsnorm", backend="torch", variant="fixed")
def fixed(x, weight, *, eps, out):
    _normalised(x, weight, eps, out)


def _normalised(x, weight, eps, out):
    wide = x.double()
    result = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    out.copy_(result if weight is None else result * weight.double())
