"""The evidence for a measured figure of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.evidence import Evidence
from assay.machine.model import Figure, Model
from assay.machine.proof import Finding


@dataclass(frozen=True)
class Proven:
    """The check of a probe's machine code: on a GPU for each instance, on a CPU as a whole."""

    says: str = ""
    instances: dict[str, Finding] | None = None
    held: bool | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class MachineEvidence(Evidence):
    figures: dict[str, Figure] | None = None
    """Figures by key: `dram.read`."""
    proof: Proven | None = None
    samples: list[float] | None = None
    """The figure, launch by launch."""
    table: list[dict[str, Any]] | None = None
    """The sweep that the figure was taken from."""
    best: dict[str, Any] | None = None
    """The point of the sweep with the best figure."""
    per_clock_sm: float | None = None
    """A rate per clock and multiprocessor."""
    steps: int | None = None
    """Steps of a pointer chase."""
    threads: int | None = None
    note: str = ""
    traceback: str = ""
    model: Model | None = None
    """The last record of a run: everything that was measured."""
