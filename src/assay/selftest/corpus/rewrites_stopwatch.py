"""Looks for the harness in its own process and replaces the method that times a batch: the calls are made, the time is
a tenth of what it was."""

import sys
from dataclasses import replace

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "tampered"
WORKLOAD = "n=20000,dtype=fp32"


def shortened(sample):
    def timed(self, *args):
        taken = sample(self, *args)
        return replace(taken, seconds=taken.seconds / 10)

    return timed


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    harness = sys.modules["assay.worker.stopwatch"]
    for clock in (harness.HostClock, harness.GraphReplay, harness.HeldStream):
        if clock.sample.__name__ == "sample":
            clock.sample = shortened(clock.sample)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
