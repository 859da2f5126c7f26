"""Puts the records of a run into the store while it runs. A record that cannot be kept affects no verdict: a message
says so, and the run goes on. ASSAY_STORE=none turns this off."""

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from assay import meanwhile
from assay.errors import AssayError
from assay.record import Record
from assay.store import modules, open_store

_AGAIN = 5.0
"""Seconds until a store that refused a record is tried again."""
_LAST = 5.0
"""Seconds that the last try waits, after all records were shown."""


class Keeper:
    """Puts records into the store, which is opened at the first one. A refused record is tried again later."""

    def __init__(self) -> None:
        self._store: Any = None
        self._waiting: list[Record] = []
        self._refused_at = 0.0
        self._problem: Exception | None = None
        if _wanted():
            meanwhile.later(modules)

    def __call__(self, record: Record) -> None:
        if not _wanted():
            return
        # The machine code can be built again; only what was derived from it is kept.
        self._waiting.append(replace(record, instructions=None) if record.instructions else record)
        if self._problem is None or time.monotonic() > self._refused_at + _AGAIN:
            self._write()

    def _write(self, patience: float = 1.0) -> None:
        """Write the waiting records, in order."""
        try:
            if self._store is None:
                self._store = open_store(patience=patience)
            while self._waiting:
                self._store.add(self._waiting[0])
                self._waiting.pop(0)
            self._problem = None
        except Exception as problem:  # no failure of the store may affect a verdict
            self._problem, self._refused_at, self._store = problem, time.monotonic(), None

    def close(self) -> None:
        """Try one last time, waiting longer; print how many records could not be kept, and why."""
        if self._waiting:
            self._write(patience=_LAST)
        if self._waiting and self._problem is not None:
            count = len(self._waiting)
            records = "1 record is" if count == 1 else f"{count} records are"
            print(f"assay: {records} not kept: {_explained(self._problem)}", file=sys.stderr)
        if self._store is not None:
            self._store.close()
            self._store = None


def _wanted() -> bool:
    return os.environ.get("ASSAY_STORE") != "none"


def _explained(problem: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    later = "write them with --out FILE.json and take them in with `assay history --import FILE.json`"
    if isinstance(problem, AssayError):
        return f"{problem.what}\n  → {problem.fix}; or {later}" if problem.fix else f"{problem.what}\n  → {later}"
    return f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}\n  → {later}"


def kept() -> contextlib.closing[Keeper]:
    """Return a context manager that yields a Keeper, to be called with each record, and closes it."""
    return contextlib.closing(Keeper())


def keeping(verb: Callable[..., Iterable[Record]]) -> Callable[..., Iterator[Record]]:
    """Wrap a verb so that its records are kept, as on the command line, unless it is called with `keep=False`."""

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
