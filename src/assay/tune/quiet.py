"""Rejects a GPU that something else uses, or whose clocks are reduced: times taken there would decide by chance."""

from __future__ import annotations

import time

from assay import host
from assay.bench.evidence import BenchEvidence
from assay.bench.sensors import Sensors
from assay.errors import UsageError
from assay.record import Record

_BUSY = 5
"""Per cent of the time that an idle GPU may be reported as busy."""
_LOOKS, _BETWEEN = 12, 0.25
"""The most polls until the GPU is idle, and seconds between them: the work of a process that just ended is reported for
about a second."""
HELD_DOWN = ("hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "hardware power brake")
"""Reasons that reduce the clocks although the kernel does nothing unusual. A time taken meanwhile is not used."""


def refuse_busy(device: str) -> None:
    """Raise UsageError if the GPU is in use or hot. A CPU is never idle, so its times carry their own spread
    instead."""
    gpu = host.gpu()
    if device != "cuda" or gpu is None:
        return
    sensors = Sensors(gpu.bus)
    busy = sensors.busy() or 0
    for _ in range(_LOOKS):
        if busy <= _BUSY:
            break
        time.sleep(_BETWEEN)
        busy = min(busy, sensors.busy() or 0)
    if busy > _BUSY:
        raise UsageError(
            f"{gpu.name} is in use: it was busy {busy} % of the time before anything was measured",
            fix="wait until it is idle, or choose another one: --device cuda:1",
        )
    if hot := sorted(set(sensors.read().get("throttle", ())) & set(HELD_DOWN)):
        raise UsageError(f"the clocks of {gpu.name} are held down by {' and '.join(hot)}", fix="let it cool down first")


def held_down(timed: Record) -> list[str]:
    """Return what reduced the clocks while a record's times were taken; nothing on a CPU."""
    clocks = BenchEvidence.of(timed).clocks
    return sorted(set(clocks.throttle or ()) & set(HELD_DOWN)) if clocks else []
