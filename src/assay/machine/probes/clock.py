"""The SM clock under load, once the power limit had time to act."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from assay.machine.lab import f32, key
from assay.machine.probe import Measured, Probe
from assay.machine.probes.vector import PER_TURN
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

SECONDS = 3.0
ILP, THREADS = 4, 1024


def _sustained(lab: Lab, probe: Probe) -> Measured:
    """fp32 multiply-adds on every multiprocessor; the second half of the time counts, the table shows all of it."""
    kernel = lab.kernel(probe, f"fma_peak<fp32, {ILP}>")

    def go(rounds: int, clocks: Any) -> None:
        kernel(lab.sms, THREADS, f32(0.9375), f32(0.0625), rounds, key(), lab.sink, clocks)

    rounds = lab.rounds(go, 10e-3)
    begin, table = time.perf_counter(), []
    while (elapsed := time.perf_counter() - begin) < SECONDS:
        _, clocks = lab.time(lambda c: go(rounds, c), 8, warm_up=0)
        table += [{"seconds": elapsed, "mhz": mhz} for mhz in clocks]
    late = [row["mhz"] for row in table if row["seconds"] >= table[-1]["seconds"] / 2]
    return Measured([mhz * 1e6 for mhz in late], late, f"seconds={SECONDS}", table)


PROBES = (
    Probe("clock.sustained", "clock", "Hz", f"the SM clock after {SECONDS:g} s of FFMA on every multiprocessor",
          "vector.cu", {f"fma_peak<fp32, {ILP}>": Proof({"FFMA": PER_TURN}, others=8)}, _sustained),
)  # fmt: skip
