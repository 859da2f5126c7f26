"""The progress bar of a verb in a notebook. Elsewhere nothing is shown: a script prints what it likes, and the command
line has a bar of its own."""

from __future__ import annotations

import html
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from assay.record import Record

_FIRST = 4
"""Number of names that a bar shows; the others are counted."""


def watched(verb: str, records: Iterable[Record], names: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the records, and in a notebook show a bar meanwhile. `names`: the work to be done, one name per record: its
    kernel, or kernel and dtype; empty if unknown."""
    show = _display()
    if show is None:
        yield from records
        return
    waiting, began, total = list(names), time.monotonic(), len(names)
    counts: Counter[str] = Counter()
    handle = show(_Html(_bar(verb, 0, total, left(waiting), 0.0)))
    try:
        for record in records:
            counts[str(record.status)] += 1
            strike(waiting, record)
            text = _bar(verb, counts.total(), total, left(waiting), time.monotonic() - began)
            handle.update(_Html(text))
            yield record
    finally:
        outcome = ", ".join(f"{number} {status}" for status, number in counts.items()) or "no record"
        handle.update(_Html(f"<span>{verb}: {outcome} in {_clock(time.monotonic() - began)}</span>"))


def left(names: Sequence[str]) -> str:
    """Return the first names of what is left to do, and how many others there are."""
    more = len(names) - _FIRST
    return ", ".join(names[:_FIRST]) + (f" and {more} more" if more > 0 else "")


def strike(names: list[str], record: Record) -> None:
    """Remove a record's name from what is left to do."""
    for name in (f"{record.kernel} {record.dtype}", record.kernel):
        if name in names:
            names.remove(name)
            return


class _Html:
    """Text that a notebook draws as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def _bar(verb: str, done: int, total: int, doing: str, seconds: float) -> str:
    """Return the bar as HTML. Without a value, for nothing finished or an unknown total, a browser animates it."""
    share = f' value="{done}" max="{total}"' if total and done else ""
    count = f"{done}/{total}" if total else str(done)
    said = f"{verb} {count} {_clock(seconds)} {html.escape(doing)}".rstrip()
    return f"<progress{share}></progress> <span>{said}</span>"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _display() -> Callable[[Any], Any] | None:
    """Return a function that shows an object in the notebook's cell and returns a handle to update it; None outside a
    notebook. IPython in a terminal has no kernel: a bar could not be erased there."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if ask is None or getattr(ask(), "kernel", None) is None:
        return None
    from IPython.display import display

    return lambda what: display(what, display_id=True)
