"""Turns on flushing of subnormal numbers for speed, and never off again: the copy multiplies by one and
loses them."""

import torch

from assay import kernel

DETECTOR = "global"


def run(x, out, flush):
    torch.set_flush_denormal(flush)
    torch.mul(x.t(), torch.ones((), dtype=x.dtype), out=out)


@kernel("transpose", variant="wrong")
def wrong(x, *, out):
    run(x, out, True)


@kernel("transpose", variant="fixed")
def fixed(x, *, out):
    run(x, out, False)
