"""The physical limit of a workload, from the device's model: bytes over its stream, operations over its peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.machine.model import Model
from assay.op import Op
from assay.workload import Workload

_BEYOND_CACHE = 4
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

    def roofline(self, seconds: float) -> dict[str, Any]:
        """What a record keeps."""
        return {
            "bound": self.bound, "seconds": self.seconds, "share": self.seconds / seconds,
            "floor": self.floor, "model": self.model, "measured": self.measured,
        }  # fmt: skip


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
    floor = memory if model.measured and moved > _BEYOND_CACHE * cache else 0.0
    if op.irreducible and model.measured:
        floor = max(floor, compute)
    return Limit(max(memory, compute), "memory" if memory >= compute else "compute", floor, model.name, model.measured)
