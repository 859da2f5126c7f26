"""The evidence of a comparison of two runs."""

from dataclasses import dataclass
from typing import Annotated, Any

from assay.evidence import Evidence, Figure


@dataclass(frozen=True)
class Measured:
    """One of the two runs."""

    run: str = ""
    median: float | None = None
    commit: str | None = None
    """Of the repository that the kernel's source is in."""


@dataclass(frozen=True)
class CompareEvidence(Evidence):
    verdict: str = ""
    """`SAME`, `FASTER`, `SLOWER` or `AMBIGUOUS`; empty where only one run has the cell."""
    ratio: Annotated[float | None, Figure("×", "new/old", "of the medians")] = None
    interval: Annotated[tuple[float, float] | None, Figure("×", "interval", "of that ratio at 95 %")] = None
    p: Annotated[float | None, Figure("", "p", "the probability of this where nothing changed")] = None
    old: Measured | None = None
    new: Measured | None = None
    device: str = ""
    source_changed: bool | None = None
    parameters: dict[str, Any] | None = None
    """Tunables of `old` and `new`, where they differ."""
