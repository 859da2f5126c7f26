"""Records of a run go into the store while it runs. What cannot be kept costs no verdict: it is said in one sentence,
and the run goes on. ASSAY_STORE=none turns keeping off."""

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from assay.errors import AssayError
from assay.record import Record
from assay.store import open_store

_AGAIN = 5.0
"""Seconds after which a store that refused a record is asked again."""
_LAST = 5.0
"""Seconds that the last try waits for it, when everything is shown."""


class Keeper:
    """Puts records into the store, opened with the first. One that is refused waits, and is offered again later."""

    def __init__(self) -> None:
        self._store: Any = None
        self._waiting: list[Record] = []
        self._refused_at = 0.0
        self._problem: Exception | None = None

    def __call__(self, record: Record) -> None:
        if os.environ.get("ASSAY_STORE") == "none":
            return
        # The code can be built again; what follows from it is kept.
        self._waiting.append(replace(record, instructions=None) if record.instructions else record)
        if self._problem is None or time.monotonic() > self._refused_at + _AGAIN:
            self._offer()

    def _offer(self, patience: float = 1.0) -> None:
        """Give the store what waits, in order."""
        try:
            if self._store is None:
                self._store = open_store(patience=patience)
            while self._waiting:
                self._store.add(self._waiting[0])
                self._waiting.pop(0)
            self._problem = None
        except Exception as problem:  # whatever it is, the verdict stands without it
            self._problem, self._refused_at, self._store = problem, time.monotonic(), None

    def close(self) -> list[Record]:
        """The last try, with more patience; what is left is said. Returns it."""
        if self._waiting:
            self._offer(patience=_LAST)
        if self._waiting and self._problem is not None:
            print(f"assay: {_count(self._waiting)} not kept: {_said(self._problem)}", file=sys.stderr)
        return self._waiting


def _count(records: list[Record]) -> str:
    return "1 record is" if len(records) == 1 else f"{len(records)} records are"


def _said(problem: Exception) -> str:
    later = "write them with --out FILE.json and take them in with `assay history --import FILE.json`"
    if isinstance(problem, AssayError):
        return f"{problem.what}\n  → {problem.fix}; or {later}" if problem.fix else f"{problem.what}\n  → {later}"
    return f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}\n  → {later}"


@contextlib.contextmanager
def kept() -> Iterator[Keeper]:
    keep = Keeper()
    try:
        yield keep
    finally:
        keep.close()


def keeping(verb: Callable[..., Iterable[Record]]) -> Callable[..., Iterator[Record]]:
    """The verb as Python calls it: its records are kept as the command keeps them, unless `keep=False`."""

    @functools.wraps(verb)
    def run(*what: Any, keep: bool = True, **settings: Any) -> Iterator[Record]:
        records = verb(*what, **settings)
        return _kept(records) if keep else iter(records)

    return run


def _kept(records: Iterable[Record]) -> Iterator[Record]:
    with kept() as keep:
        for record in records:
            keep(record)
            yield record
