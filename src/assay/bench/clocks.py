"""Checks the worker's clock against two others: the parent's, and the device's record of each kernel. docs/bench.md
documents the rules."""

import math
from collections.abc import Callable

from assay.bench.evidence import ParentClock, SecondClock
from assay.worker.questions import Activity, Timed

ALLOWED = 4.0
"""How many times the claimed seconds the parent may wait for a run, including request and answer."""
AIMS = (1e-3, 2e-3, 4e-3, 8e-3)
"""Claimed seconds of a run, tried in turn. In a longer run the cost of the request matters less; a shorter one is more
likely to be undisturbed on a busy system, which preempts a process every few milliseconds."""
TRIES, PATIENCE, LEAST = 64, 10.0, 8
"""The most runs that may disagree, and the most seconds they may take; but always this many are tried, since a whole
machine may stand still for longer. One run that agrees is enough: other processes can only make the parent wait."""
_FEW, _FAR = 16, 50.0
"""The parent gives up after this many runs if each of them took this many times the claimed seconds."""
_LONG = 0.1
"""Seconds; a run that took this long is not made longer, whatever time is claimed for it."""
_ROUND = (1.02, 5e-3)
"""A factor and a constant in seconds by which the times of a round may exceed the parent's wait, since two clocks
differ."""
_RELATIVE, _ABSOLUTE = 0.03, 1e-6
"""Allowed difference between the events and the device's record, as a share and in seconds; the larger one applies."""


def parent_clock(ask: Callable[[int], float], claimed: float) -> ParentClock:
    """Compare the parent's clock with the `claimed` seconds of a batch. `ask` runs the batch the given number of times
    and returns the seconds that the parent waited."""
    most, least, spent = 1, math.inf, 0.0
    for number in range(TRIES):
        aim = AIMS[number % len(AIMS)]
        times = min(most, max(1, math.ceil(aim / claimed))) if claimed > 0 else most
        waited = ask(times)
        spent, least = spent + waited, min(least, waited / times)
        if waited <= ALLOWED * times * claimed:
            return ParentClock(claimed, least, True)
        if (spent > PATIENCE and number + 1 >= LEAST) or (number >= _FEW and least > _FAR * claimed):
            break
        if waited < _LONG:
            most = max(most, 2 * times)
    return ParentClock(claimed, least, False)


def claims_too_much(answer: Timed, waited: float) -> str:
    """Return the reason if a round's times add up to more than the whole round took, else an empty string."""
    claimed = answer.batch * (sum(answer.cold) + sum(answer.hot)) + answer.single * sum(answer.call)
    factor, constant = _ROUND
    if claimed <= factor * waited + constant:
        return ""
    return f"its times add up to {claimed:.3g} s, in a round that took {waited:.3g} s"


def second_clock(events: float, activity: Activity | str, held: bool) -> SecondClock:
    """Return whether the events around a batch agree with the device's record of it and, if not, the likely reason.
    `held` is true if all launches were queued before the device began. If `activity` is a string, it says why there is
    no record."""
    if isinstance(activity, str):
        return SecondClock(None, f"not taken: {activity}")
    device, launches = activity.seconds, activity.launches
    difference = events - device
    agrees = abs(difference) <= max(_RELATIVE * device, _ABSOLUTE)
    why = "" if agrees else _why(difference, launches, activity.streams, held)
    return SecondClock(agrees, why, device, launches, activity.streams, activity.names)


def _why(difference: float, launches: float, streams: int, held: bool) -> str:
    shown = f"{abs(difference) * 1e6:.2f} µs"
    if not launches:
        return "the device recorded no kernel: nothing was launched, or by means that are not recorded"
    if streams > 1:
        return f"hidden stream: kernels ran on {streams} streams, the events see one"
    if not held:
        return f"host sync: the launches could not be queued ahead, and {shown} a call are the host's"
    if difference < 0:
        return f"overlap: kernels of neighbouring calls ran at once, {shown} a call"
    if launches > 1.5:
        return f"several kernels: {launches:g} a call, with {shown} between them"
    return f"launch-bound: {shown} between one kernel's end and the next one's start"
