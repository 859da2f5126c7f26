"""Starts on a stream of its own, which waits for the caller's, and never lets the caller's wait for it: the events
around a batch see nothing of the work."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unfinished"
NEEDS = "gpu"
WORKLOAD = "n=50000000,dtype=fp32"
streams: list = []


def own_stream():
    if not streams:
        streams.append(torch.cuda.Stream())
    return streams[0]


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    stream = own_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    stream = own_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.ops.aten.gelu.out(x, out=out)
    torch.cuda.current_stream().wait_stream(stream)
