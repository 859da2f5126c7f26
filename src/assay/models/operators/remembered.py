"""What was decided about calls of one signature, so that it is decided once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Decision = TypeVar("Decision")
MOST = 4096
"""Signatures: sequences of ever new lengths must not fill the memory."""


class Remembered(Generic[Decision]):
    def __init__(self) -> None:
        self._found: dict[Hashable, Decision] = {}

    def of(self, signature: Hashable, decide: Callable[[], Decision]) -> Decision:
        found = self._found.get(signature)
        if found is None:
            if len(self._found) >= MOST:
                self._found.clear()
            found = self._found[signature] = decide()
        return found
