"""What `assay model compile` measured of one state, and when compiling has paid for itself."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from assay.bench.statistics import Estimate, of_rounds
from assay.evidence import Evidence, Figure
from assay.models.studies.agreement import Errors, wrong

Samples = list[list[float]]
"""By round."""


@dataclass(frozen=True)
class Cache:
    """Graphs that inductor loaded from its cache, compiled anew, or did not look up."""

    hits: int
    misses: int
    bypassed: int


@dataclass(frozen=True)
class Counts:
    """As dynamo and inductor count."""

    frames: int
    graphs: int
    operators: int
    breaks: int
    cache: Cache


@dataclass(frozen=True)
class Outputs:
    """Errors against the model in float64, in units of one rounding."""

    eager: Errors
    compiled: Errors
    share: float
    """Of the tolerance: above 1 it is wrong."""
    ratio: float | None = None
    """Compiled's worst error over eager's."""
    note: str = ""

    @property
    def wrong(self) -> str:
        return wrong("eager", self.eager, self.compiled, self.share, self.note)


@dataclass(frozen=True)
class Kernels:
    """Of one call."""

    kernels: float
    names: dict[str, int]
    device_seconds: float | None = None
    written: dict[str, int] | None = None
    """By inductor: calls of each in all graphs."""


@dataclass(frozen=True)
class Break:
    """Where a graph was broken, and why."""

    reason: str
    explanation: str = ""
    hint: str = ""
    where: str = ""
    function: str = ""
    code: str = ""

    def __str__(self) -> str:
        place = f"{self.where} in {self.function}" if self.where else "somewhere"
        return f"{place}: {self.code or '?'}: {self.reason}"


@dataclass(frozen=True)
class Step:
    """A batch size of a sweep."""

    batch: int
    first_seconds: list[float]
    """Of the first calls, one by one."""
    compilations: int
    graphs: int
    outputs: Outputs
    compile_seconds: float = 0.0
    """What the first call costs beyond the ones after it."""


@dataclass(frozen=True)
class Worth:
    """When compiling has paid for itself: never, at once, after so many calls, or ambiguous."""

    verdict: Literal["at once", "after", "never", "ambiguous"]
    saving: float
    """Seconds a compiled call is shorter than an eager one; median over rounds, both taken in the same round."""
    interval: tuple[float, float]
    """Of that, at 95 %."""
    calls: int | None = None
    """After which both have taken as long."""
    calls_interval: tuple[int, int] | None = None

    def __str__(self) -> str:
        if self.calls_interval is None:
            return {"never": "never pays", "ambiguous": "may never pay: no faster beyond doubt"}.get(
                self.verdict, "nothing left to pay"
            )
        low, high = self.calls_interval
        return f"pays after {self.calls:,} calls ({low:,} to {high:,})"


def break_even(compile_seconds: float, eager: Sequence[Sequence[float]], compiled: Sequence[Sequence[float]]) -> Worth:
    """From the rounds' samples. If the interval of the saving has zero in it, the answer is `ambiguous`."""
    pairs = zip(eager, compiled, strict=False)
    saving = of_rounds([statistics.median(e) - statistics.median(c) for e, c in pairs if e and c])
    low, high = saving.interval
    if high <= 0:
        return Worth("never", saving.median, saving.interval)
    if low <= 0:
        return Worth("ambiguous", saving.median, saving.interval)
    if compile_seconds <= 0:
        return Worth("at once", saving.median, saving.interval)
    calls, least, most = (math.ceil(compile_seconds / s) for s in (saving.median, high, low))
    return Worth("after", saving.median, saving.interval, calls, (least, most))


@dataclass(frozen=True)
class CompileEvidence(Evidence):
    """`eager` and `compiled` are the two arms wherever something is kept by arm."""

    study: str = "compile"
    model: str = ""
    batches: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    state: str = ""
    state_means: str = ""
    mode: str = "default"
    dynamic: bool | None = None
    backend: str = "inductor"
    threads: int | None = None
    method: str = ""
    """How it was timed."""
    parameter_count: int | None = None
    counts: Counts | None = None
    phases: dict[str, float] | None = None
    """Seconds by torch's own name of the phase; they nest."""
    outputs: Outputs | None = None
    compile_seconds: Annotated[float | None, Figure("s", "compile", "the first calls beyond steady ones")] = None
    again: float | None = None
    """The same in a warm process that forgot what it had compiled."""
    steady: dict[str, Estimate] | None = None
    """Seconds of a call."""
    speedup: Estimate | None = None
    break_even: Worth | None = None
    kernels: dict[str, Kernels] | None = None
    graph_breaks: list[Break] | None = None
    curve: dict[str, list[tuple[int, float]]] | None = None
    """Calls, and seconds that the first so many took together."""
    eager_first_seconds: float | None = None
    before_seconds: list[float] | None = None
    first_seconds: list[float] | None = None
    again_seconds: list[float] | None = None
    batch: dict[str, int] | None = None
    """Calls in a sample."""
    eager_samples: Samples | None = None
    device_samples: dict[str, Samples] | None = None
    device_steady: dict[str, Estimate] | None = None
    """On a GPU: without what launching costs."""
    steps: list[Step] | None = None
    """Of a sweep."""
    recompiles: int | None = None
    recompile_reasons: list[str] | None = None
    failure: dict[str, Any] | None = None
    """The details of the failure, as the process reported them."""
