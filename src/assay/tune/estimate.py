"""The static model: estimates launch times on a device from the code and the device's figures. Its purpose is to order
configurations, not to predict times.

A launch takes at least as long as its bytes need and as its instructions need to be issued. Its bytes need longer if
too few of them are in flight at once (Little's law), and a last wave of blocks that fills only part of the device costs
as much as a full one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.backends.base import Launch
from assay.inspect.evidence import Summary
from assay.inspect.occupancy import WARP, occupancy
from assay.isa.chips import Chip
from assay.machine.model import Model, best, published
from assay.target import Target
from assay.workload import Workload

_USUAL = {(8, 0): "A100", (8, 6): "L40S", (8, 9): "L40S", (9, 0): "H200", (10, 0): "B200"}
"""The device whose published figures are used if no device is present, by compute capability."""
_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor; each issues one instruction per cycle."""
_SMS, _HERTZ, _BANDWIDTH, _LATENCY = 132, 1.7e9, 3.3e12, 700.0
"""Figures of a device about which nothing else is known."""
_START = 1.0e-6
"""Seconds to start a launch inside a graph."""
_TAIL, _NOT_OVERLAPPED = 0.1, 0.1
"""The weight of an unfilled last wave, and the share of the shorter of memory and issue time that is not overlapped."""
_BLOCK = 700.0
"""Cycles from the start of a block to the issue of its first load, plus those from its last store to its end."""


def model_for(target: Target, device: str | None) -> Model | None:
    """Return the model of this machine's GPU, or the published model of a typical device of this architecture."""
    if device:
        return best(device)
    name = _USUAL.get(target.capability)
    return published(name) if name else None


@dataclass(frozen=True)
class Work:
    """The work of one launch, as far as its code shows it."""

    blocks: int
    warps: int
    """Warps of a block."""
    registers: int
    shared: int
    instructions: int
    cycles: float
    """Cycles to issue the code of one warp, with each loop's body issued once."""
    loaded: int
    """Bytes that a thread loads from global memory if every load runs once."""
    moved: int
    """Bytes that a thread loads and stores in global memory if every access runs once."""

    @classmethod
    def of(cls, launch: Launch, code: Summary) -> Work:
        moved = {kind: _bytes(code, f"global {kind}") for kind in ("load", "store")}
        return cls(
            blocks=max(1, math.prod(launch.grid)),
            warps=max(1, -(-math.prod(launch.block) // WARP)),
            registers=code.registers or WARP,
            shared=code.shared.static + launch.shared,
            instructions=code.instructions,
            cycles=float(code.cycles if code.cycles is not None else sum(code.cycles_per_block.values())),
            loaded=moved["load"],
            moved=sum(moved.values()),
        )

    def passes(self, workload: Workload) -> float:
        """Return how often the loop bodies must run for all threads together to move the op's bytes."""
        once = self.blocks * self.warps * WARP * self.moved
        return max(1.0, workload.bytes / once) if once else 1.0


def _bytes(code: Summary, kind: str) -> int:
    """Return the bytes of the widest accesses of a kind. Narrower ones usually handle the end of a tensor."""
    widths = code.widths.get(kind, {})
    widest = max(map(int, widths), default=0)
    return widest // 8 * widths.get(str(widest), 0)


def seconds(works: Sequence[Work], workload: Workload, chip: Chip | None, model: Model | None) -> float | None:
    """Return the estimated seconds of all launches together; None if nothing is known about the target."""
    if chip is None:
        return None
    return sum(_one(work, workload, len(works), chip, model) for work in works)


def _one(work: Work, workload: Workload, launches: int, chip: Chip, model: Model | None) -> float:
    sms = int(model.facts.get("sms", _SMS)) if model else _SMS
    hertz = model.facts.get("boost_mhz", _HERTZ / 1e6) * 1e6 if model else _HERTZ
    bandwidth = (model.stream() if model else None) or _BANDWIDTH
    latency = ((model.value("latency.dram") if model else None) or _LATENCY) / hertz
    held = max(1, occupancy(chip, work.warps * WARP, work.registers, work.shared).blocks)
    resident = min(held, -(-work.blocks // sms))
    waves = math.ceil(work.blocks / (resident * sms))
    passes = work.passes(workload)
    moved = workload.bytes / launches
    in_flight = sms * resident * work.warps * WARP * max(work.loaded, 1)
    share = min(1.0, in_flight / (bandwidth * latency))
    memory = moved / (bandwidth * max(share, 1e-3))
    beside = resident * work.warps / _SCHEDULERS  # warps per scheduler: one waits while the others issue
    issue = waves * max(work.instructions * beside, work.cycles) * passes / hertz
    start = waves * _BLOCK / hertz / max(1.0, resident / 2)
    tail = waves * resident * sms / max(1, work.blocks)
    longer, shorter = max(memory, issue), min(memory, issue)
    return _START + start + longer * (1 + _TAIL * (min(tail, 2.0) - 1)) + _NOT_OVERLAPPED * shorter
