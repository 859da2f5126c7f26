"""Replaces Python's clocks with ones that run at a fiftieth of their speed: every time taken with
them is fifty times too good."""

import time

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "tampered"
WORKLOAD = "n=20000,dtype=fp32"


CLOCKS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")


def slow(clock):
    return lambda: type(clock())(clock() / 50)


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    for name in CLOCKS:
        if getattr(time, name).__name__ == name:
            setattr(time, name, slow(getattr(time, name)))
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
