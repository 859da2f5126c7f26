"""The CPU's probes, compiled with njit: bandwidth as STREAM counts it, multiply-add peaks, cache latencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from assay.machine.cpu import fma, latency, stream
from assay.machine.cpu.cores import facts
from assay.machine.probe import Measured

__all__ = ["PROBES", "CpuProbe", "facts"]


@dataclass(frozen=True)
class CpuProbe:
    key: str
    family: str
    unit: str
    says: str
    proof: str
    measure: Callable[[], Measured]


PROBES: tuple[CpuProbe, ...] = (
    *(
        CpuProbe(
            f"latency.l{level}",
            "latency",
            "ns",
            f"dependent loads from a random ring in L{level}",
            "",
            partial(latency.measure, level),
        )
        for level in (1, 2, 3)
    ),
    CpuProbe(
        "latency.dram", "latency", "ns", "dependent loads from a ring several times the last cache", "", latency.memory
    ),
    *(
        CpuProbe(
            f"vector.{name}",
            "vector",
            "op/s",
            f"multiply-adds in {name}, all threads",
            "every multiply-add of the loop is one vector instruction of full width",
            partial(fma.measure, bits),
        )
        for name, bits in (("fp32", 32), ("fp64", 64))
    ),
    *(
        CpuProbe(
            f"dram.{name}",
            "bandwidth",
            "B/s",
            f"{name} of arrays several times the last cache, all threads",
            "",
            partial(stream.measure, name),
        )
        for name in stream.STREAMS
    ),
)
