"""One configuration starts quickly from Python and does its work twice; the other takes long to start and does it once.
A tuner that times single calls chooses the first, which is slower in a graph (pytorch/pytorch#179246)."""

import time

import torch

from assay import kernel

VERB = "tune"
DETECTOR = "slower"
NEEDS = "gpu"
WORKLOAD = "n=8388608,dtype=fp32"
SLOWER = {"times": 2}


def waited(seconds):
    """Keep the host busy, as a launch with much Python around it does."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@kernel("gelu", variant="wrong", backend="torch", tune={"times": [2, 1]})
def wrong(x, *, out, times=2):
    if times == 1:
        waited(200e-6)
    for _ in range(times):
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch", tune={"times": [2, 1]})
def fixed(x, *, out, times=2):
    for _ in range(times):
        torch.ops.aten.gelu.out(x, out=out)
