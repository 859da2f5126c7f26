"""Says, in the local variables of the function that times it, that a batch had three times as many calls. That is too
little for the parent's clock to tell from a busy machine, and more than the memory can deliver."""

import ctypes
import sys

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "floor"
NEEDS = "gpu"
WORKLOAD = "n=134217728,dtype=fp32"
last: list = [None]


def count_more(times):
    """Once for every batch: `count` is what its time will be divided by."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name not in ("_once", "_between_events"):
        frame = frame.f_back
    timed = frame is not None and (frame.f_code.co_name == "_between_events" or "began" in frame.f_locals)
    if timed and frame is not last[0]:
        last[0] = frame
        frame.f_locals["count"] *= times
        if sys.version_info < (3, 13):  # later ones write through
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


@kernel("silu", variant="wrong", backend="torch")
def wrong(x, *, out):
    count_more(3)
    torch.ops.aten.silu.out(x, out=out)


@kernel("silu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.silu.out(x, out=out)
