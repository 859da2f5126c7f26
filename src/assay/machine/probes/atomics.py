"""Measures atomic additions per second, by how many threads share an address."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from assay.machine.probe import Measured, Probe
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

UNROLL = 8
THREADS = 1024
SHARING = {"same": (0, 0), "warp": (0, 32), "spread": (1, 32)}
"""Words between lanes, and words between warps: all threads on one address, one address per warp, one per thread."""
_SAYS = {"same": "all threads on one address", "warp": "one address per warp", "spread": "one address per thread"}


def _measure(lab: Lab, probe: Probe, space: str, sharing: str) -> Measured:
    kernel = lab.kernel(probe, f"{space}_add<{UNROLL}>")
    lane, warp = SHARING[sharing]
    grid = lab.sms * (2 if space == "global" else 1)

    def go(rounds: int, clocks: Any) -> None:
        kernel(grid, THREADS, lab.sink, lane, warp, rounds, clocks)

    rounds = lab.rounds(go, first=8)
    seconds, clocks = lab.time(lambda c: go(rounds, c))
    work = grid * THREADS * UNROLL * rounds
    samples = [work / s for s in seconds]
    return Measured(samples, clocks, f"threads={grid * THREADS}", more=lab.per_clock(samples[0], clocks))


_PROOFS = {"global": Proof({"RED*.E.ADD*": UNROLL}, others=10), "shared": Proof({"ATOMS*": UNROLL}, others=10)}

PROBES = tuple(
    Probe(
        f"atomic.{space}.{sharing}",
        "atomics",
        "op/s",
        f"{space} memory, {_SAYS[sharing]}",
        "atomics.cu",
        {f"{space}_add<{UNROLL}>": _PROOFS[space]},
        partial(_measure, space=space, sharing=sharing),
    )
    for space in ("global", "shared")
    for sharing in SHARING
)
