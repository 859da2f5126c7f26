"""The famous reciprocal root from a float's bits, with two Newton steps where the game had one: still
5·10⁻⁶ off."""

import torch

from assay import kernel

DETECTOR = "values"


def by_bits(v):
    guess = (0x5F3759DF - (v.view(torch.int32) >> 1)).view(torch.float32)
    for _ in range(2):
        guess = guess * (1.5 - 0.5 * v * guess * guess)
    return guess


def run(x, weight, eps, out, rsqrt):
    v = x * rsqrt((x * x).mean(1, keepdim=True) + eps)
    out.copy_(v if weight is None else v * weight)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    run(x, weight, eps, out, by_bits)


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    run(x, weight, eps, out, torch.rsqrt)
