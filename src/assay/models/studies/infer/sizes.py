"""The batch sizes of a run: those that were named, or of the usual ones as many as can be measured in a stated time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

USUAL = (1, 16, 32, 64, 128, 1024)
SECONDS = {"cuda": 300.0, "cpu": 60.0}
"""Seconds that passes of the model may take at the usual batch sizes, in all variants and arms together."""
_PASSES = 20
"""Passes of each model in each arm at one batch size, to warm up, to judge, to time and to profile; 18 to 22 were
counted where a pass takes a tenth of a second or more, and shorter ones matter little."""


@dataclass(frozen=True)
class Sizes:
    batches: tuple[int, ...]
    """The batch sizes to run, smallest first."""
    too_long: Mapping[int, str] = field(default_factory=dict)
    """Named batch size → why it is not run."""
    left_out: str = ""
    """Which of the usual batch sizes are not run, why, and how to run them."""


def named(calls: Mapping[int, float], budget: float) -> Sizes:
    """Return the batch sizes of which one call fits the budget. `calls`: seconds of one call by batch size."""
    too_long = {
        batch: f"one call takes about {seconds:.3g} s, more than --budget {budget:g}"
        for batch, seconds in calls.items()
        if seconds > budget
    }
    return Sizes(tuple(sorted(calls.keys() - too_long.keys())), too_long)


def usual(calls: Mapping[int, float], budget: float, ways: int, seconds: float) -> Sizes:
    """Return the batch sizes that fit into `seconds`, from the smallest on, which is run in any case if one call of it
    fits the budget. `ways`: the number of models times that of arms."""
    batches: list[int] = []
    spent = 0.0
    for batch in sorted(calls):
        spent += calls[batch] * _PASSES * ways
        if calls[batch] > budget or (batches and spent > seconds):
            break
        batches.append(batch)
    rest = sorted(set(calls) - {*batches})
    if not rest:
        return Sizes(tuple(batches))
    return Sizes(tuple(batches), left_out=_left_out(rest, calls, budget, _PASSES * ways, seconds))


def _left_out(rest: list[int], calls: Mapping[int, float], budget: float, passes: int, seconds: float) -> str:
    first, longest, whole = calls[rest[0]], max(calls[batch] for batch in rest), passes * sum(calls.values())
    why = f"passes of the model at all usual batch sizes would take about {whole:.0f} s, more than {seconds:g} s"
    if first > budget:
        why = f"one call takes about {first:.3g} s or more, which exceeds --budget {budget:g}"
    names = ",".join(map(str, rest))
    allowed = f" --budget {math.ceil(12 * longest) / 10:g}" if longest > budget else ""  # a fifth more than estimated
    return f"batch {names.replace(',', ', ')} left out for all variants: {why}. To run: --batch {names}{allowed}"
