"""Starts a thread and returns: the result is there a moment later, when nobody looks at the clock any more."""

import threading
import time

import torch

from assay import kernel

DETECTOR = "late"
NEEDS = "no gpu"
WORKLOAD = "n=1000,dtype=fp32"


def gelu(x, out):
    time.sleep(0.03)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    threading.Thread(target=gelu, args=(x, out)).start()


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    thread = threading.Thread(target=gelu, args=(x, out))
    thread.start()
    thread.join()
