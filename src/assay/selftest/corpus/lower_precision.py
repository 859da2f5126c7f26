"""Computes in bfloat16 and hands the result back as float32: fast, close, and not what was asked for."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    out.copy_(torch.nn.functional.gelu(x.bfloat16()))


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
