"""The outcome of one workload, and its conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.backends import Availability
from assay.check.figures import Errors
from assay.check.judge import Finding, Prior
from assay.worker.failure import Failure

if TYPE_CHECKING:
    from assay.check.plain import PlainTorch


@dataclass(frozen=True)
class Outcome:
    finding: Finding | None = None
    errors: tuple[Errors, ...] = ()
    deterministic: bool = True
    controls: dict[str, bool] = field(default_factory=dict)
    seconds: tuple[float, ...] = ()
    work: int = 0
    """Operations that an interpreter counted in the first call; 0 if it counts none."""
    programs: int = 0
    """The most programs of a launch that it counted."""
    beyond: dict[str, int] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    torch_wrong: str = ""
    """The vendor's library, or the arithmetic, with which PyTorch is wrong on this workload."""
    compared: tuple[int, ...] = ()
    """Integers that the launched PTX compares registers with."""
    delayed: int = 0
    """Pieces of code that were built with delays (worker.delays)."""
    lost: bool = False
    """Whether the worker is gone or cannot be trusted any more."""
    hurried: bool = False
    """Whether a call was ended before the kernel's own limit, because the run has to end."""
    detail: dict[str, Any] = field(default_factory=dict)


LEAST = 2.0
"""Seconds of its own time that a call gets, however little is left of the run."""


@dataclass(frozen=True)
class Conditions:
    """The conditions that all workloads of one kernel and dtype share."""

    here: Availability
    plain: PlainTorch
    prior: Callable[[], Prior]
    """PyTorch's own errors on a fixed sample; computed when first needed."""
    parameters: dict[str, Any]
    threads: int
    programs: int = 1 << 62
    """The most programs of one launch, in an interpreter."""
    depth: str = "deep"
    """`lean`: two calls on one set of values. `usual`: five on three sets, and on a GPU two more, one with late inputs
    and one while the memory is busy. `deep`: further values, and on a GPU a call while the multiprocessors are busy.
    Only some of many workloads are examined this closely. `delayed`: ten on two sets."""
    delays: str = ""
    """The kind of delays in the kernel's code (worker.delays), for all workloads of a worker."""
    until: float | None = None
    """When the next call must end, on the monotonic clock; a call gets at least LEAST seconds of its own time."""
    seconds: float | None = None
    """Seconds of its own time that each call gets, in place of all other limits."""


def raised(error: Failure, seconds: tuple[float, ...] = ()) -> Outcome:
    """Return the outcome of an exception inside the worker. After a CUDA error the process's context is unusable."""
    text = error.what or error.message
    words = text if error.ours else f"{error.type}: {text}"
    detector, lost = "exception", False
    if error.type == "BuildError":
        detector = "build"
    elif error.type == "LaunchError":  # refused before it was launched
        detector = "launch"
    elif error.type in ("SystemExit", "KeyboardInterrupt"):
        detector, lost = "exit", True
    elif "CUDA" in text or "cuda" in error.type.lower():
        detector, lost = "launch", True
    where = f" at {error.where}" if error.where and error.where not in text else ""
    where += f"\n  → {error.fix}" if error.fix else ""
    finding = Finding(detector, f"{_short(words)}{where}")
    return Outcome(finding, seconds=seconds, lost=lost, detail=vars(error))


def _short(text: str, limit: int = 1500) -> str:
    return text if len(text) <= limit else text[:limit] + " …"
