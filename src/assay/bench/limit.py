"""Lower bounds of a kernel's time: from the device's model (bytes over its fastest stream, operations over its peak),
and from the yardsticks timed in the same rounds."""

from collections.abc import Mapping

from assay.bench.evidence import Floor, Roofline
from assay.machine.model import Model
from assay.workload import Workload

BEYOND_CACHE = 4
"""A working set of more than this many times the last-level cache must come from memory."""
_LESS = 0.97
"""The floor, as a share of the time that the fastest yardstick needs for as many bytes."""


def roofline(workload: Workload, model: Model | None, cache: int, seconds: float) -> Roofline | None:
    """Return the limit by the model, and the share of it that a kernel taking `seconds` reaches. None without a model,
    or if the model has no memory bandwidth."""
    op = workload.op
    stream = model.stream() if model else None
    if model is None or not stream:
        return None
    moved = workload.bytes
    memory = moved / stream
    peak = model.peak(workload.dtype.name) or model.peak("fp32")
    if op.irreducible:  # a matrix product may use the matrix units
        peak = max(filter(None, (peak, model.peak(workload.dtype.name, tensor=True))), default=None)
    compute = workload.operations / peak if peak else 0.0
    floor = memory if model.measured and moved > BEYOND_CACHE * cache else 0.0
    if op.irreducible and model.measured:
        floor = max(floor, compute)
    limit, bound = max(memory, compute), "memory" if memory >= compute else "compute"
    return Roofline(bound, limit, limit / seconds, floor, model.name, model.measured)


def timed_floor(moved: int, yardsticks: Mapping[str, tuple[float, int, str]], cold: bool) -> Floor | None:
    """Return the floor that follows from each yardstick's fewest seconds, bytes and form. None if the buffers are not
    cold or no reads and writes were timed: a CPU's caches may be larger than reported and hold the whole workload."""
    rates = {kind: size / seconds for kind, (seconds, size, _) in yardsticks.items() if seconds > 0}
    if not cold or not {"read", "write"} <= set(yardsticks) or not rates or not moved:
        return None
    best = max(rates, key=lambda kind: rates[kind])
    return Floor(_LESS * moved / rates[best], best, rates[best] / 1e9, yardsticks[best][2])
