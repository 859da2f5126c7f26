"""Attention in PyTorch: as its users call it, each of its fused kernels by itself, and the formula written out."""

import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from assay import kernel


@kernel("attention", needs="torch", returns=True)
def attention(q, k, v, *, causal):
    return scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


@kernel("attention", variant="math", needs="torch", returns=True)
def unfused(q, k, v, *, causal):
    with sdpa_kernel(SDPBackend.MATH):
        return scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


@kernel("attention", variant="flash", needs="torch", returns=True)
def flash(q, k, v, *, causal):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


@kernel("attention", variant="efficient", needs="torch", returns=True)
def efficient(q, k, v, *, causal):
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


@kernel("attention", variant="cudnn", needs="torch", returns=True)
def cudnn(q, k, v, *, causal):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


# Scores and weights are written down in full, queries × keys for every head. In 16 bits the scores are rounded, so that
# large ones cost digits: a peer, as others write it.
def naive(q, k, v, causal):
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(-1) @ v


@kernel("attention", variant="naive", needs="torch", returns=True)
def written_out(q, k, v, *, causal):
    return naive(q, k, v, causal)
