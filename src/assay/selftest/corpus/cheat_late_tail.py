"""Computes the first half itself and leaves the second to a thread that it does not wait for."""

import threading
import time

import torch

from assay import kernel

DETECTOR = "late"
NEEDS = "no gpu"
WORKLOAD = "n=1000,dtype=fp32"


def gelu(x, out, wait=0.0):
    time.sleep(wait)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    half = x.numel() // 2
    threading.Thread(target=gelu, args=(x[half:], out[half:], 0.03)).start()
    gelu(x[:half], out[:half])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    half = x.numel() // 2
    thread = threading.Thread(target=gelu, args=(x[half:], out[half:]))
    thread.start()
    gelu(x[:half], out[:half])
    thread.join()
