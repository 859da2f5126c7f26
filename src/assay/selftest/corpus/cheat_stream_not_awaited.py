"""Launches on a stream of its own and has the caller's wait for it, but does not wait for the caller's first: it may
read its input before it is there."""

import torch

from assay import kernel

DETECTOR = "stream"
NEEDS = "gpu"
WORKLOAD = "n=100000,dtype=fp32"
side: list = []


def gelu(x, out, wait):
    if not side:
        side.append(torch.cuda.Stream())
    caller = torch.cuda.current_stream()
    if wait:
        side[0].wait_stream(caller)
    with torch.cuda.stream(side[0]):
        torch.ops.aten.gelu.out(x, out=out)
    caller.wait_stream(side[0])


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    gelu(x, out, False)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    gelu(x, out, True)
