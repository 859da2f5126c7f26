"""A causal mask that begins one diagonal too late: every query also sees the key after its own."""

import math

import torch

from assay import kernel

DETECTOR = "values"


def _attention(q, k, v, causal, out, diagonal):
    scores = (q @ k.mT).float() / math.sqrt(q.shape[-1])
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(diagonal)
        scores = scores.masked_fill(later, -math.inf)
    out.copy_(scores.softmax(-1).to(v.dtype) @ v)


@kernel("attention", variant="wrong")
def wrong(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, diagonal=2)


@kernel("attention", variant="fixed")
def fixed(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, diagonal=1)
