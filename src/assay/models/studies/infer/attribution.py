"""Which module and which operator a piece of work belongs to. Plain intervals on the host's clock: no profiler here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MODULE = "assay.module:"
"""Before a module's path, in the name of its range."""


@dataclass(frozen=True)
class Span:
    """From when to when something was open on the host: a module's range, or an operator. They nest."""

    start: int
    end: int
    name: str

    @property
    def module(self) -> bool:
        return self.name.startswith(MODULE)


@dataclass(frozen=True)
class Work:
    at: int | None
    """When the host started it; None: nobody knows."""
    length: int


@dataclass
class Part:
    """The work of one module's own forward through one of its outermost operators."""

    path: str
    operator: str
    """Empty: started by the module's code itself."""
    length: int = 0
    pieces: int = 0


@dataclass
class Parts:
    found: list[Part]
    unattributed: int
    """Work that was started inside no module."""

    @property
    def total(self) -> int:
        return sum(p.length for p in self.found) + self.unattributed


def attribute(spans: Iterable[Span], works: Iterable[Work]) -> Parts:
    """Each piece goes to the innermost module that is open when it starts, and there to the outermost operator."""
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
    """What ended before this one began is over."""
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
    """Operators that no other operator calls, each as one piece of work: what a CPU does while the host runs it."""
    found: list[Work] = []
    end = -1
    for span in sorted((s for s in spans if not s.module), key=lambda s: (s.start, -s.end)):
        if span.start >= end:
            found.append(Work(span.start, span.end - span.start))
            end = span.end
    return found
