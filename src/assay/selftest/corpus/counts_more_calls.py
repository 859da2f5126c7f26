"""Reaches into the local variables of the function that times it and says that a batch had twenty times as many calls:
no name is replaced, and the time of one call is twenty times too good."""

import ctypes
import sys

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "clock"
WORKLOAD = "n=20000,dtype=fp32"
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


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    count_more(20)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
