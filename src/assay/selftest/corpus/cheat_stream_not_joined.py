"""Launches on a stream of its own, which waits for the caller's, but the caller's does not wait for it: whoever
reads the result next may come too early."""

import torch

from assay import kernel

DETECTOR = "late"
NEEDS = "gpu"
WORKLOAD = "n=100000,dtype=fp32"
side: list = []


def gelu(x, out, join):
    if not side:
        side.append(torch.cuda.Stream())
    caller = torch.cuda.current_stream()
    side[0].wait_stream(caller)
    with torch.cuda.stream(side[0]):
        torch.ops.aten.gelu.out(x, out=out)
    if join:
        caller.wait_stream(side[0])


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    gelu(x, out, False)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    gelu(x, out, True)
