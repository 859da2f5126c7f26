"""Measures the cost of a launch: on the stream, as a node of a graph, and on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import AssayError
from assay.machine.lab import LAUNCHES
from assay.machine.probe import Measured, Probe
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

COUNT = 500
"""Launches per sample: fewer than the queue of a stream holds, so that the host never waits."""
HOLD = 20_000_000
"""Nanoseconds within which the host must have queued all launches."""


def _stream(lab: Lab, probe: Probe) -> Measured:
    """Measure the time from one empty kernel to the next, all queued before the first starts."""
    import torch

    kernel = lab.kernel(probe, "nothing")
    samples: list[float] = []
    tries = 0
    while len(samples) < LAUNCHES:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        lab.hold(HOLD)
        start.record()
        for _ in range(COUNT):
            kernel(1, 32)
        end.record()
        in_time, tries = not start.query(), tries + 1
        torch.cuda.synchronize()
        if in_time:
            samples.append(start.elapsed_time(end) / 1e3 / COUNT)
        elif tries > 5 * LAUNCHES:
            raise AssayError(f"the host never queued {COUNT} launches within {HOLD / 1e6:g} ms")
    return Measured(samples[1:], workload=f"launches={COUNT}")


def _graph(lab: Lab, probe: Probe) -> Measured:
    """Measure the time from one empty node to the next in a replayed graph."""
    import torch

    kernel = lab.kernel(probe, "nothing")
    kernel(1, 32)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(COUNT):
            kernel(1, 32)
    samples = []
    for _ in range(LAUNCHES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        lab.hold()
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / COUNT)
    return Measured(samples[1:], workload=f"nodes={COUNT}")


def _host(lab: Lab, probe: Probe) -> Measured:
    """Measure the host time of one launch through cuda.core, as Assay's own backend launches."""
    import time

    import torch

    kernel = lab.kernel(probe, "nothing")
    samples = []
    for _ in range(LAUNCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(COUNT):
            kernel(1, 32)
        samples.append((time.perf_counter() - start) / COUNT)
    torch.cuda.synchronize()
    return Measured(samples[1:], workload=f"launches={COUNT}")


_EMPTY = {"nothing": Proof(empty=True)}

PROBES = (
    Probe(
        "launch.stream",
        "launch",
        "s",
        "from one empty kernel to the next on a stream",
        "launching.cu",
        _EMPTY,
        _stream,
        helpers=("hold",),
    ),
    Probe(
        "launch.graph_node", "launch", "s", "from one empty node of a graph to the next", "launching.cu", _EMPTY, _graph
    ),
    Probe("launch.host", "launch", "s", "the host's own time for one launch", "launching.cu", _EMPTY, _host),
)

"""The source also contains `hold`, the kernel that blocks a stream."""
