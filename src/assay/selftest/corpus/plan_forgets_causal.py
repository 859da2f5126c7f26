"""What is planned for a shape is kept, and `causal` is no part of its key: the first value decides for all later calls
of that shape."""

import math

import torch

from assay import kernel

DETECTOR = "state"
_PLANS: dict = {}


@kernel("attention", backend="torch", variant="wrong")
def wrong(q, k, v, *, causal, out):
    _attention(q, k, v, _PLANS.setdefault((q.shape, k.shape), causal), out)


@kernel("attention", backend="torch", variant="fixed")
def fixed(q, k, v, *, causal, out):
    _attention(q, k, v, _PLANS.setdefault((q.shape, k.shape, causal), causal), out)


def _attention(q, k, v, causal, out):
    scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    out.copy_(scores.softmax(-1) @ v.double())
