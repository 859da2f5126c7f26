"""Partial sums go into a buffer that grows and is kept. After a larger call, a smaller one adds up what that left
behind its own partial sums."""

import torch

from assay import kernel

DETECTOR = "state"
_KEPT = {"wrong": torch.zeros(0, dtype=torch.float64)}


@kernel("sum", backend="torch", variant="wrong")
def wrong(x, *, out):
    _sum(x, out, "wrong")


@kernel("sum", backend="torch", variant="fixed")
def fixed(x, *, out):
    _sum(x, out, "")


def _sum(x, out, kept):
    count = -(-x.numel() // 1024)
    partial = _KEPT.get(kept)
    if partial is None or partial.numel() < count:
        partial = torch.zeros(count, dtype=torch.float64)
        if kept:
            _KEPT[kept] = partial
    for i in range(count):
        partial[i] = x[i * 1024 : (i + 1) * 1024].double().sum()
    out.copy_(partial.sum())
