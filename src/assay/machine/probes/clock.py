"""Measures the SM clock under load, after the power limit has had time to act."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assay.machine.lab import f32, key
from assay.machine.probe import Measured, Probe
from assay.machine.probes import tensor, vector
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

SECONDS = 2.0


def _sustained(lab: Lab, go: Callable[[int, Any], None]) -> Measured:
    """Run `go` for `SECONDS`. The figure covers the second half of that time, the table all of it."""
    rounds = lab.rounds(go, 10e-3)
    begin, table = time.perf_counter(), []
    while (elapsed := time.perf_counter() - begin) < SECONDS:
        _, clocks = lab.time(lambda c: go(rounds, c), 8, warm_up=0)
        table += [{"seconds": elapsed, "mhz": mhz} for mhz in clocks]
    late = [row["mhz"] for row in table if row["seconds"] >= table[-1]["seconds"] / 2]
    return Measured([mhz * 1e6 for mhz in late], late, f"seconds={SECONDS}", table)


def _vector(lab: Lab, probe: Probe) -> Measured:
    kernel = lab.kernel(probe, "fma_peak<fp32, 4>")
    return _sustained(lab, lambda r, c: kernel(lab.sms, 1024, f32(0.9375), f32(0.0625), r, key(), lab.sink, c))


def _mma(lab: Lab, probe: Probe) -> Measured:
    kernel, x = lab.kernel(probe, "mma_peak<bf16, 4>"), tensor.random("bf16", 8 * 32 * 6 * 4)
    return _sustained(lab, lambda r, c: kernel(lab.sms, 8 * 32, x, r, key(), lab.sink, c))


def _wgmma(lab: Lab, probe: Probe) -> Measured:
    kernel, size = lab.kernel(probe, "wgmma_peak<bf16, 2>"), (2 * 64 + 256) * 128
    x = tensor.random("bf16", size)
    return _sustained(lab, lambda r, c: kernel(lab.sms, 2 * 128, x, r, key(), lab.sink, c, shared=size + 1024))


_SAYS = f"the SM clock after {SECONDS:g} s of {{}} on every multiprocessor"

PROBES = (
    Probe(
        "clock.vector",
        "clock",
        "Hz",
        _SAYS.format("FFMA"),
        "vector.cu",
        {"fma_peak<fp32, 4>": Proof({"FFMA": vector.PER_TURN}, others=8)},
        _vector,
    ),
    Probe(
        "clock.mma",
        "clock",
        "Hz",
        _SAYS.format("bf16 mma.sync on random data"),
        "tensor_mma.cu",
        {"mma_peak<bf16, 4>": Proof({tensor.MMA["bf16"][0]: tensor.PER_TURN}, others=8)},
        _mma,
    ),
    Probe(
        "clock.wgmma",
        "clock",
        "Hz",
        _SAYS.format("bf16 wgmma on random data"),
        "tensor_wgmma.cu",
        {"wgmma_peak<bf16, 2>": Proof({tensor.WGMMA["bf16"][0]: tensor.WGMMA_PER_TURN}, others=64)},
        _wgmma,
        only=("sm_90a",),
        lacks="wgmma is Hopper's alone",
    ),
)
