"""The GPU's probes: one file per family, next to the CUDA source it launches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from assay.machine.probe import Probe


@cache
def probes() -> tuple[Probe, ...]:
    """Return all probes in the order in which they run: long, heavy ones last."""
    from assay.machine.probes import atomics, bandwidth, clock, latency, launching, shared, tensor, vector

    families = (launching, latency, shared, bandwidth, atomics, vector, tensor, clock)
    every = [probe for family in families for probe in family.PROBES]
    return tuple(replace(probe, beside=tuple(p for p in every if p.source == probe.source)) for probe in every)
