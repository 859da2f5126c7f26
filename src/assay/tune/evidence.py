"""The evidence of tuning: of one configuration, and of the choice between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from assay.evidence import Evidence, Figure


@dataclass(frozen=True)
class Static:
    """What is known of a configuration's machine code without running it. Of several launches: the largest of each
    figure, the smallest occupancy, and the sum of the estimates."""

    registers: Annotated[int | None, Figure("", "registers", "that each thread has")] = None
    shared: Annotated[int | None, Figure("B", "shared memory", "of a block, static and dynamic")] = None
    spills: Annotated[int | None, Figure("B", "spills", "that a thread stores or loads")] = None
    occupancy: Annotated[float | None, Figure("share", "occupancy", "of the warps that fit")] = None
    warps: int | None = None
    """Warps that a multiprocessor holds at once."""
    instructions: int | None = None
    cycles: Annotated[float | None, Figure("", "issue cycles", "of one warp, estimated")] = None
    threads: int | None = None
    """Of a block."""
    blocks: int | None = None
    """Of the grid."""
    estimate: Annotated[float | None, Figure("s", "estimate", "by the static model")] = None
    model: str = ""
    """The machine's model that the estimate is for."""
    code: str = ""
    """Identifies machine code and launches: configurations with the same are the same kernel."""


@dataclass(frozen=True)
class Ranked:
    """One of the configurations that were timed in the same rounds at the end."""

    parameters: dict[str, Any]
    median: float
    interval: tuple[float, float]
    verdict: str = ""
    """Against the winner, by compare's rule; empty for the winner."""
    why: str = ""


@dataclass(frozen=True)
class Choice:
    """The winner, and what it was chosen from."""

    winner: dict[str, Any]
    median: float | None = None
    """Seconds; None where nothing ran."""
    ties: list[dict[str, Any]] | None = None
    """Configurations that compare's rule does not tell from the winner; where nothing ran, those with its estimate."""
    default: dict[str, Any] | None = None
    """The kernel's own values, where they were timed."""
    gain: float | None = None
    """How many times faster the winner is than the default, in the same rounds."""
    gain_verdict: str = ""
    """By compare's rule: `FASTER`; empty where the default was not timed or wins. Older records also have `SAME` and
    `AMBIGUOUS`."""
    ranking: list[Ranked] | None = None
    lost: list[dict[str, Any]] | None = None
    """Configurations that were right at first and failed when they were timed again: they cannot win."""
    strategy: str = ""
    combinations: int = 0
    """Of the values in `tune=`."""
    configurations: int = 0
    """Those of them that `fits=` allows."""
    pruned: int = 0
    measured: int = 0
    known: int = 0
    """Of those measured: taken from the store."""
    failed: int = 0
    shape_class: str = ""
    """The workloads that the winner is used for: see assay.store.tuned."""
    considered: str = ""
    """Identifies the configurations and times that the choice was made from."""
    spent: dict[str, float] | None = None
    """Seconds by stage: `compile`, `check`, and those of bench."""


@dataclass(frozen=True)
class TuneEvidence(Evidence):
    parameters: dict[str, Any] | None = None
    """The configuration; absent in the record of the choice."""
    source: str = ""
    """Identifies the kernel's source without its space: a new value in `tune=` leaves what was measured valid."""
    device: str = ""
    """`cuda` or `cpu`."""
    target: str = ""
    """What it was compiled for; empty for a CPU kernel."""
    detector: str = ""
    """On failure: the detector that noticed it."""
    pruned: str = ""
    """Why it was not measured."""
    same_as: dict[str, Any] | None = None
    """The configuration with the same machine code and launches, which was measured in its place."""
    place: Annotated[int | None, Figure("", "place", "by the static model; 1 is the most promising")] = None
    static: Annotated[Static | None, Figure("", "", "without running it")] = None
    checked: Annotated[int | None, Figure("", "checked", "workloads that it was checked on")] = None
    rounds: Annotated[int | None, Figure("", "rounds", "of timing")] = None
    spread: Annotated[float | None, Figure("share", "±", "half of the interval over the median")] = None
    threads: Annotated[int | None, Figure("", "threads", "on a CPU")] = None
    method: str = ""
    """How it was timed."""
    choice: Choice | None = None
    """In the last record of a kernel and workload: the winner."""
