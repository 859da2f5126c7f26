"""Work that can be done while a verb waits for its first results, such as importing what will keep them."""

import contextlib
from collections.abc import Callable

_later: list[Callable[[], object]] = []


def later(work: Callable[[], object]) -> None:
    """Remember work for the next time this process waits. It may never be done, so nothing may depend on it."""
    _later.append(work)


def do() -> None:
    """Do what was remembered. An error is left to whoever needs the result."""
    while _later:
        with contextlib.suppress(Exception):
            _later.pop()()
