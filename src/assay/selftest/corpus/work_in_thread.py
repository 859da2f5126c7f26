"""Hands its work to a thread and returns at once: the batch is over before the results are there, and a moment later
all of them are right."""

import queue
import threading
import time

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unfinished"
WORKLOAD = "n=20000,dtype=fp32"
jobs: queue.Queue = queue.Queue()


def work():
    while True:
        x, out = jobs.get()
        time.sleep(0.001)
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong", backend="njit")
def wrong(x, *, out):
    if not any(t.name == "work" for t in threading.enumerate()):
        threading.Thread(target=work, name="work", daemon=True).start()
    jobs.put((x, out))


@kernel("gelu", variant="fixed", backend="njit")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
