"""The parent's own clock. A worker tells how long its batches took; the parent lets it run a batch again and again and
looks at its own clock meanwhile. The rule is written down in docs/bench.md."""

from __future__ import annotations

import math
from collections.abc import Callable

from assay.bench.evidence import ParentClock
from assay.worker.questions import Timed

ALLOWED = 4.0
"""Times the claimed seconds that the parent may wait for a run, asking and answering included."""
AIMS = (1e-3, 2e-3, 4e-3, 8e-3)
"""Claimed seconds of a run, tried in turn: a longer one makes less of the asking, a shorter one is more often left
alone by a busy system, which takes a processor away every few milliseconds."""
TRIES, PATIENCE = 64, 10.0
"""One run that agrees is enough, since other processes can only make the parent wait longer. So many may disagree, or
so many seconds of them."""
_FEW, _FAR = 16, 50.0
"""Runs after which nothing more is tried if all of them took so many times what is claimed."""
_LONG = 0.1
"""Seconds of a run from which none is made longer, whatever is claimed for it."""
_ROUND = (1.02, 5e-3)
"""Of a whole round no more than what the parent waited, with so much for two clocks that differ."""


def pace(ask: Callable[[int], float], claimed: float) -> ParentClock:
    """`ask` lets the batch run so many times and returns the seconds that the parent waited; `claimed` is for one."""
    most, least, spent = 1, math.inf, 0.0
    for number in range(TRIES):
        aim = AIMS[number % len(AIMS)]
        times = min(most, max(1, math.ceil(aim / claimed))) if claimed > 0 else most
        waited = ask(times)
        spent, least = spent + waited, min(least, waited / times)
        if waited <= ALLOWED * times * claimed:
            return ParentClock(claimed, least, True)
        if spent > PATIENCE or (number >= _FEW and least > _FAR * claimed):
            break
        if waited < _LONG:
            most = max(most, 2 * times)
    return ParentClock(claimed, least, False)


def claims_too_much(answer: Timed, waited: float) -> str:
    """Whether a round's times add up to more than the whole round took; empty if they do not."""
    claimed = answer.batch * (sum(answer.cold) + sum(answer.hot)) + answer.single * sum(answer.call)
    factor, constant = _ROUND
    if claimed <= factor * waited + constant:
        return ""
    return f"its times add up to {claimed:.3g} s, in a round that took {waited:.3g} s"
