"""When compiling has paid for itself: never, at once, after so many calls, or it cannot be told."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.bench.statistics import of_rounds

Verdict = Literal["at once", "after", "never", "ambiguous"]


@dataclass(frozen=True)
class Worth:
    verdict: Verdict
    saving: float
    """Seconds a compiled call is shorter than an eager one; median over rounds, both taken in the same round."""
    interval: tuple[float, float]
    """Of that, at 95 %."""
    calls: int | None = None
    """After which both have taken as long."""
    calls_interval: tuple[int, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

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


def marks(most: int) -> Iterator[int]:
    """1, 2, 5, 10, 20, … up to `most`, and `most` itself."""
    scale = 1
    while scale <= most:
        yield from (m * scale for m in (1, 2, 5) if m * scale < most)
        scale *= 10
    if most > 0:
        yield most
