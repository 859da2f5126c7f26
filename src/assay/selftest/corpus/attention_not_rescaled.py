"""An online softmax whose weighted sum is not made smaller when a later tile brings a larger score: only the sum of
weights is. With all keys in one tile nothing is wrong."""

import math

import torch

from assay import kernel

DETECTOR = "values"
TILE = 16


def _attention(q, k, v, causal, out, rescale):
    rows = torch.arange(q.shape[2], device=q.device)[:, None]
    top = torch.full((*q.shape[:3], 1), -math.inf, device=q.device)
    total, mean = torch.zeros_like(top), torch.zeros(q.shape, device=q.device)
    for start in range(0, k.shape[2], TILE):
        keys, values = k[:, :, start : start + TILE].float(), v[:, :, start : start + TILE].float()
        scores = q.float() @ keys.mT / math.sqrt(q.shape[3])
        if causal:
            later = start + torch.arange(keys.shape[2], device=q.device) > rows
            scores = scores.masked_fill(later, -math.inf)
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        fade, weights = (top - higher).exp(), (scores - higher).exp()
        total = total * fade + weights.sum(-1, keepdim=True)
        mean = mean * (fade if rescale else 1.0) + weights @ values
        top = higher
    out.copy_(mean / total)


@kernel("attention", variant="wrong")
def wrong(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, rescale=False)


@kernel("attention", variant="fixed")
def fixed(q, k, v, *, causal, out):
    _attention(q, k, v, causal, out, rescale=True)
