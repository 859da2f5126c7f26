"""Two clocks that must agree: events around a batch, and what the device itself recorded of each kernel."""

from __future__ import annotations

from assay.bench.evidence import SecondClock
from assay.worker.questions import Activity

_RELATIVE, _ABSOLUTE = 0.03, 1e-6


def agreement(events: float, activity: Activity | str, held: bool) -> SecondClock:
    """Do they, and if not, why we think so. Without a record of the device, `activity` says why there is none."""
    if isinstance(activity, str):
        return SecondClock(None, f"not taken: {activity}")
    device, launches = activity.seconds, activity.launches
    off = events - device
    agrees = abs(off) <= max(_RELATIVE * device, _ABSOLUTE)
    why = "" if agrees else _why(off, launches, activity.streams, held)
    return SecondClock(agrees, why, device, launches, activity.streams, activity.names)


def _why(off: float, launches: float, streams: int, held: bool) -> str:
    shown = f"{abs(off) * 1e6:.2f} µs"
    if not launches:
        return "the device recorded no kernel: nothing was launched, or by means that are not recorded"
    if streams > 1:
        return f"hidden stream: kernels ran on {streams} streams, the events see one"
    if not held:
        return f"host sync: the launches could not be queued ahead, and {shown} a call are the host's"
    if off < 0:
        return f"overlap: kernels of neighbouring calls ran at once, {shown} a call"
    if launches > 1.5:
        return f"several kernels: {launches:g} a call, with {shown} between them"
    return f"launch-bound: {shown} between one kernel's end and the next one's start"
