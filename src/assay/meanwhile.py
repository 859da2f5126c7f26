"""Work that can be done while a verb waits for its first results, such as importing what will keep them."""

import contextlib
from collections.abc import Callable

_later: list[Callable[[], object]] = []


def later(work: Callable[[], object]) -> None:
    """Remember work for the next time this process waits. It may never be done, so nothing may depend on it."""
    _later.append(work)


def do() -> None:
    """Do the remembered work. Errors are ignored here: they appear again where the result is needed."""
    while _later:
        with contextlib.suppress(Exception):
            _later.pop()()
