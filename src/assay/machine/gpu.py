"""GPU probes from the parent's side: a child process runs them; when it dies, another goes on with the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.worker.fresh import Fresh, Refused, last_words
from assay.worker.limits import WorkerLost

LIMIT = 180.0
"""Seconds one probe may take, building included."""


Outcome = tuple[str, dict[str, Any]]


def outcomes(keys: list[str], limit: float = LIMIT, child: str = "assay.machine.child") -> Iterator[Outcome]:
    """(key, outcome) of each probe as it is finished; ("", facts) whenever a child has opened the device. Probes that a
    child never began are given to the next one; if it cannot open the device, all of them have failed."""
    waiting = list(keys)
    while waiting:
        with Fresh(child, {}) as process:
            try:
                facts = process.ask({"do": "open"}, limit)
            except (Refused, WorkerLost) as problem:
                why = last_words(problem) if isinstance(problem, WorkerLost) else str(problem)
                yield from ((key, _failed(why)) for key in waiting)
                return
            yield "", facts
            yield from _measured(process, waiting, limit)


def _measured(process: Fresh, waiting: list[str], limit: float) -> Iterator[Outcome]:
    """Of the probes that wait, until none is left or the process is lost."""
    while waiting:
        key = waiting.pop(0)
        try:
            outcome = process.ask({"do": "measure", "probe": key}, limit)
        except WorkerLost as lost:
            outcome = _failed(last_words(lost)) | {"lost": True}
        yield key, outcome
        if outcome.get("lost"):
            return


def _failed(why: str) -> dict[str, Any]:
    return {"ok": False, "why": why, "proof": {}, "artifacts": []}
