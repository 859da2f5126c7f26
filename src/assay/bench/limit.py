"""The physical limit of a workload, from the device's model: bytes over its stream, operations over its peak. And,
where there is no model, what was timed beside the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.bench.evidence import Floor, Roofline
from assay.machine.model import Model
from assay.op import Op
from assay.workload import Workload

BEYOND_CACHE = 4
"""Working sets above this many times the last cache must come from memory."""


@dataclass(frozen=True)
class Limit:
    seconds: float
    bound: str
    """`memory` or `compute`: which of the two it is."""
    floor: float
    """No honest cold time is shorter; 0 where nothing is certain."""
    model: str
    measured: bool

    def roofline(self, seconds: float) -> Roofline:
        """What a record keeps."""
        return Roofline(self.bound, self.seconds, self.seconds / seconds, self.floor, self.model, self.measured)


def limit(op: Op, workload: Workload, model: Model | None, cache: int) -> Limit | None:
    """None where there is no model, or it does not say."""
    stream = model.stream() if model else None
    if model is None or not stream:
        return None
    moved = op.bytes(workload)
    memory = moved / stream
    peak = model.peak(workload.dtype.name) or model.peak("fp32")
    if op.irreducible:  # a matrix product may use the matrix units
        peak = max(filter(None, (peak, model.peak(workload.dtype.name, tensor=True))), default=None)
    compute = op.operations(workload) / peak if peak else 0.0
    floor = memory if model.measured and moved > BEYOND_CACHE * cache else 0.0
    if op.irreducible and model.measured:
        floor = max(floor, compute)
    return Limit(max(memory, compute), "memory" if memory >= compute else "compute", floor, model.name, model.measured)


LESS = 0.97
"""Of the time that the fastest yardstick needs for as many bytes."""


def timed_floor(moved: int, yardsticks: Mapping[str, tuple[float, int, str]], cold: bool) -> Floor | None:
    """From the least seconds, the bytes and the form of a call of each yardstick. None where the buffers are not cold,
    or where no reads and writes were taken: a CPU's caches, whose true size nobody tells, may hold the workload."""
    if not cold or not {"read", "write"} <= set(yardsticks):
        return None
    rates = {kind: size / seconds for kind, (seconds, size, _) in yardsticks.items() if seconds > 0}
    if not rates or not moved:
        return None
    best = max(rates, key=lambda kind: rates[kind])
    return Floor(LESS * moved / rates[best], best, rates[best] / 1e9, yardsticks[best][2])
