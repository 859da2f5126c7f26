"""Plain lines of progress on standard error, where no terminal can show a bar."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 5.0
"""Seconds between two lines: a log shall show what takes long, not every step."""


@contextmanager
def lines(total: int | None, what: str) -> Iterator[Callable[[str, int], None]]:
    """Yield a callback for the current activity and the number of finished items. The first activity is printed at
    once, as `infer mnist-cnn 3/24: torch: batch 16`; later, every few seconds, the one that goes on, if it is new."""
    now, printed = "", ""
    ended = threading.Event()

    def show() -> None:
        nonlocal printed
        if now != printed:
            printed = now
            print(printed, file=sys.stderr, flush=True)

    def watch() -> None:
        while not ended.wait(EVERY):
            show()

    def tick(text: str, done: int) -> None:
        nonlocal now
        now = f"{what}{f' {done}/{total}' if total else ''}: {text}"
        if not printed:
            show()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield tick
    finally:
        ended.set()
        thread.join()
