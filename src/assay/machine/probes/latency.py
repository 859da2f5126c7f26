"""Measures the cycles of one dependent load at every memory level, by pointer chase over a random ring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.machine.lab import LAUNCHES, key
from assay.machine.probe import Measured, Probe
from assay.machine.proof import Proof

if TYPE_CHECKING:
    import torch

    from assay.machine.lab import Lab

STRIDE = 256
"""Bytes between nodes: more than a cache line, so that each node is fetched separately."""
FAR = 512
"""Bytes between nodes in device memory."""
LINKS = 32
"""Loads per iteration of the loop."""


def ring(bytes_: int, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return nodes in random order, each holding the address of the next, and the address of the first."""
    import torch

    nodes = bytes_ // stride
    words = torch.zeros((nodes, stride // 8), dtype=torch.int64, device="cuda")
    order = torch.randperm(nodes, device="cuda")
    addresses = words.data_ptr() + order * stride
    words[order, 0] = addresses.roll(-1)
    return words, addresses[:1].clone()


def _chase(
    lab: Lab,
    probe: Probe,
    level: int,
    bytes_: int,
    stride: int,
    steps: int,
    launches: int = LAUNCHES,
    fresh: bool = False,
) -> Measured:
    """Walk the ring once before the measured pass. With `fresh`, flush L2 instead, and continue each launch over nodes
    that were not visited before."""
    import torch

    kernel = lab.kernel(probe, f"chase<{level}>")
    words, start = ring(bytes_, stride)
    taken = torch.zeros((64, 1), dtype=torch.int64, device="cuda")
    at = iter(range(64))
    flush = torch.zeros(lab.l2, dtype=torch.int32, device="cuda") if fresh else None
    passes = 1 if fresh else 2

    def go(clocks: torch.Tensor) -> None:
        kernel(1, 1, start, steps, passes, taken[next(at)], clocks)

    _, clocks = lab.time(go, launches, before=flush.zero_ if flush is not None else None, warm_up=1)
    samples = [cycles / steps for (cycles,) in taken[1 : launches + 1].tolist()]
    del words
    return Measured(samples, clocks, f"bytes={bytes_},stride={stride}", more={"steps": steps})


def _l1(lab: Lab, probe: Probe) -> Measured:
    return _chase(lab, probe, 1, 32 << 10, STRIDE, 16384)


def _l2(lab: Lab, probe: Probe) -> Measured:
    bytes_ = min(8 << 20, 1 << ((lab.l2 // 4).bit_length() - 1))
    return _chase(lab, probe, 2, bytes_, STRIDE, max(bytes_ // STRIDE, 8192))


def _dram(lab: Lab, probe: Probe) -> Measured:
    """Measure over a ring of at least four times the L2. The table shows how latency grows with the ring because of the
    TLB."""
    least = 1 << (lab.l2 * 4 - 1).bit_length()
    table = []
    size = 64 << 10
    while size <= min(4 << 30, lab.memory // 8):
        rung = _chase(lab, probe, 2, size, FAR, min(max(size // FAR, 4096), 65536), launches=3)
        table.append({"bytes": size, "value": rung.value})
        size *= 4
    measured = _chase(lab, probe, 2, least, FAR, 32768, fresh=True)
    return Measured(measured.samples, measured.clocks_mhz, measured.workload, table, measured.more)


def chase_shared(lab: Lab, probe: Probe, stride: int, threads: int, steps: int = 8192, launches: int = LAUNCHES) -> Any:
    """Return the cycles per step of `threads` threads, each of which follows a pointer `stride` words from its
    neighbour's, and the clocks."""
    import torch

    kernel = lab.kernel(probe, "chase_shared")
    taken = torch.zeros((64, 1), dtype=torch.int64, device="cuda")
    at = iter(range(64))

    def go(clocks: torch.Tensor) -> None:
        kernel(1, threads, stride, steps, taken[next(at)], lab.sink, key(), clocks)

    _, clocks = lab.time(go, launches, warm_up=1)
    return [cycles / steps for (cycles,) in taken[1 : launches + 1].tolist()], clocks


def _shared(lab: Lab, probe: Probe) -> Measured:
    samples, clocks = chase_shared(lab, probe, stride=1, threads=32)
    return Measured(samples, clocks, "bytes=4096")


def _proof(load: str) -> Proof:
    return Proof({load: LINKS}, chain=load, others=12)


SHARED_PROOF = _proof("LDS")


def _probe(key_: str, says: str, instances: dict[str, Proof], measure: Any) -> Probe:
    return Probe(f"latency.{key_}", "latency", "cycles", says, "latency.cu", instances, measure)


PROBES = (
    _probe("shared", "dependent loads from shared memory", {"chase_shared": SHARED_PROOF}, _shared),
    _probe("l1", "a ring of 32 KiB, walked before", {"chase<1>": _proof("LDG.E.64")}, _l1),
    _probe("l2", "a ring in L2, past L1", {"chase<2>": _proof("LDG.E.64.STRONG.GPU")}, _l2),
    _probe(
        "dram", "a ring of four times the L2, nodes not seen before", {"chase<2>": _proof("LDG.E.64.STRONG.GPU")}, _dram
    ),
)
