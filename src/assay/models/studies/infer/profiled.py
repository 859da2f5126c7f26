"""The time of every module and every swapped site in a forward pass under the profiler, which is never a timed pass.

On a GPU the work is the kernels and copies that CUPTI recorded, each attributed to the launch that started it. On a
CPU it is the outermost operators themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, median_low
from typing import Any

import torch
from torch import nn
from torch.autograd import DeviceType

from assay.errors import AssayError
from assay.models.studies.infer.calls import watched

MODULE = "assay.module:"
"""Prefix of a module's path in the name of its profiler range."""


Ways = Mapping[str, tuple[nn.Module, Callable[[], Any]]]
"""A model and the call that runs it, by name."""


def passes(ways: Ways, count: int, device: str) -> dict[str, dict[str, Any]]:
    """Return the profile of each way, from `count` passes after a first one, in turn, so that a busy host slows all of
    them. Its seconds are `total`: all work on a GPU, the whole call on a CPU; `parts` of it by module and operator;
    `unattributed` work, or on a CPU the time `between` operators."""
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for _ in range(1 + count):
        for name, (model, call) in ways.items():
            taken[name].append(_pass(model, call, device))
    whole = {name: middle(each[1:]) for name, each in taken.items()}
    if device == "cuda" and not all(one["total"] for one in whole.values()):
        raise _blind()
    return whole


def middle(profiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of each part over several passes, so that one interrupted pass does not matter."""
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for part in (part for profile in profiles for part in profile["parts"]):
        parts.setdefault((part["path"], part["operator"]), []).append(part)

    def medians(of: str) -> float:
        return median([float(profile[of]) for profile in profiles])

    absent = {key: len(profiles) - len(each) for key, each in parts.items()}
    listed = [
        {
            "path": path,
            "operator": operator,
            "seconds": median([p["seconds"] for p in each] + [0.0] * absent[path, operator]),
            "pieces": median_low([p["pieces"] for p in each]),
        }
        for (path, operator), each in parts.items()
    ]
    attributed = sum(part["seconds"] for part in listed)
    if "unattributed" in profiles[0]:
        rest = medians("unattributed")
        sums = {"total": attributed + rest, "unattributed": rest}
    else:
        total = max(attributed, medians("total"))
        sums = {"total": total, "between": total - attributed}
    return {**sums, "wall": medians("wall"), "parts": listed}


def _pass(model: nn.Module, call: Callable[[], Any], device: str) -> dict[str, Any]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        torch.cuda.synchronize()
    with _ranges(model), torch.profiler.profile(activities=activities) as profile:
        began = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        wall = time.perf_counter() - began
    events = profile.profiler.kineto_results.events()
    spans = list(_spans(events))
    if device == "cuda":
        parts = attribute(spans, _launched(events))
        sums = {"total": parts.total * 1e-9, "unattributed": parts.unattributed * 1e-9}
    else:
        parts = attribute(spans, outermost(spans))
        whole = sum(s.end - s.start for s in spans if s.name == MODULE)
        sums = {"total": whole * 1e-9, "between": (whole - parts.total) * 1e-9}
    listed = [
        {"path": p.path, "operator": p.operator, "seconds": p.length * 1e-9, "pieces": p.pieces} for p in parts.parts
    ]
    return {**sums, "wall": wall, "parts": listed}


@contextmanager
def _ranges(model: nn.Module) -> Iterator[None]:
    """Open a profiler range around each module's forward."""
    open_: list[Any] = []

    def enter(path: str) -> None:
        named = torch.profiler.record_function(MODULE + path)
        named.__enter__()
        open_.append(named)

    def leave(path: str, output: Any) -> None:
        open_.pop().__exit__(None, None, None)

    with watched(model, enter, leave):
        yield


def _spans(events: Any) -> Iterator[Span]:
    """Yield modules and operators on the threads that ran the model's modules."""
    host = [e for e in events if e.device_type() == DeviceType.CPU]
    threads = {e.start_thread_id() for e in host if e.name().startswith(MODULE)}
    for e in host:
        if e.start_thread_id() in threads and (e.name().startswith(MODULE) or "::" in e.name()):
            yield Span(e.start_ns(), e.start_ns() + e.duration_ns(), e.name())


def _launched(events: Any) -> Iterator[Work]:
    """Yield everything that ran on the device, with the time at which the host launched it: the start of the operator
    to which CUPTI links it, on the same clock as the ranges, or else of the driver call with its correlation id."""
    calls = {
        e.correlation_id(): e.start_ns()
        for e in events
        if e.device_type() == DeviceType.CPU and e.name().startswith("cu") and "::" not in e.name()
    }
    operators = {
        e.correlation_id(): e.start_ns() for e in events if e.device_type() == DeviceType.CPU and "::" in e.name()
    }
    for e in _ran(events):
        at = operators.get(e.linked_correlation_id(), calls.get(e.correlation_id()))
        yield Work(at, e.duration_ns())


def _ran(events: Any) -> Iterator[Any]:
    """Yield kernels and copies. Ranges, which are repeated on the device's timeline, are not work."""
    for e in events:
        if e.device_type() == DeviceType.CUDA and e.duration_ns() > 0 and not e.is_user_annotation():
            yield e


def busy(call: Callable[[], Any], count: int) -> float:
    """Return the seconds of GPU work of one call, however it was launched: a graph's replay has no modules."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(count):
            call()
        torch.cuda.synchronize()
    seen = sum(e.duration_ns() for e in _ran(profile.profiler.kineto_results.events()))
    if not seen:
        raise _blind()
    return seen * 1e-9 / count


def _blind() -> AssayError:
    """Return the error for a profile without any GPU work, which happens if CUPTI gets no memory on the GPU."""
    return AssayError("the profiler saw nothing run on the GPU", fix="leave it some memory: smaller batches")


# Attribution of work to modules and operators, by intervals on the host's clock.


@dataclass(frozen=True)
class Span:
    """The interval of a module's range or an operator on the host, in ns. Spans nest."""

    start: int
    end: int
    name: str

    @property
    def module(self) -> bool:
        return self.name.startswith(MODULE)


@dataclass(frozen=True)
class Work:
    at: int | None
    """Time at which the host started it, in ns; None if unknown."""
    length: int


@dataclass
class Part:
    """The work of one module's own forward in one of its outermost operators."""

    path: str
    operator: str
    """Empty: started by the module's own code."""
    length: int = 0
    pieces: int = 0


@dataclass
class Parts:
    parts: list[Part]
    unattributed: int
    """Nanoseconds of work that was not started inside any module."""

    @property
    def total(self) -> int:
        return sum(p.length for p in self.parts) + self.unattributed


def attribute(spans: Iterable[Span], works: Iterable[Work]) -> Parts:
    """Attribute each piece of work to the innermost module open when it starts, and there to the outermost operator."""
    waiting = sorted(spans, key=lambda s: (s.start, -s.end, not s.module))
    waiting.reverse()
    parts: dict[tuple[str, str], Part] = {}
    unattributed = 0
    open_: list[Span] = []
    for work in sorted(works, key=lambda w: -1 if w.at is None else w.at):
        path, operator = None, ""
        if work.at is not None:
            while waiting and waiting[-1].start <= work.at:
                _opened(open_, waiting.pop())
            path, operator = _innermost([s for s in open_ if s.end > work.at])
        if path is None:
            unattributed += work.length
            continue
        part = parts.setdefault((path, operator), Part(path, operator))
        part.length += work.length
        part.pieces += 1
    return Parts(list(parts.values()), unattributed)


def _opened(open_: list[Span], span: Span) -> None:
    """Drop the spans that ended before this one began, and add it."""
    while open_ and open_[-1].end <= span.start:
        open_.pop()
    open_.append(span)


def _innermost(open_: Sequence[Span]) -> tuple[str | None, str]:
    path, operator = None, ""
    for span in open_:
        if span.module:
            path, operator = span.name.removeprefix(MODULE), ""
        elif path is not None and not operator:
            operator = span.name
    return path, operator


def outermost(spans: Iterable[Span]) -> list[Work]:
    """Return the operators not called by another operator, each as one piece of CPU work."""
    works: list[Work] = []
    end = -1
    for span in sorted((s for s in spans if not s.module), key=lambda s: (s.start, -s.end)):
        if span.start >= end:
            works.append(Work(span.start, span.end - span.start))
            end = span.end
    return works
