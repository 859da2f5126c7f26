"""Hands the work to a thread and returns at once, which looks very fast: the result arrives after the
clock has stopped."""

import threading
import time

import torch

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "n=1000,dtype=fp32"


def gelu(x, out, wait=0.0):
    time.sleep(wait)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    threading.Thread(target=gelu, args=(x, out, 60.0), daemon=True).start()


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    gelu(x, out)
