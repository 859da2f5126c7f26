"""Absent parameters are dropped from the list and the rest taken by position: a bias without a weight
becomes the weight."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite or unwritten or stale"  # of rows of zeros only the bias shows, and `out` ignores it


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    given = [p for p in (weight, bias) if p is not None]
    out.copy_(torch.nn.functional.layer_norm(x, x.shape[1:], *given, eps=eps))


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    out.copy_(torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, eps=eps))
