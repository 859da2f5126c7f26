"""Scores are scaled by the head's dimension as it is padded to a power of two: right for 64 and 128, wrong for 80."""

import math

from assay import kernel

DETECTOR = "values"


def _attention(q, k, v, causal, out, dim):
    scores = (q @ k.mT).float() / math.sqrt(dim)
    if causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    out.copy_(scores.softmax(-1).to(v.dtype) @ v)


@kernel("attention", variant="wrong")
def wrong(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, 1 << (q.shape[3] - 1).bit_length())


@kernel("attention", variant="fixed")
def fixed(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, q.shape[3])
