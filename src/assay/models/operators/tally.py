"""How often a place in a model ran its kernel, and how often and why it did not."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter

import torch

_numbers = itertools.count()
_tallies: weakref.WeakValueDictionary[int, Tally] = weakref.WeakValueDictionary()


class Tally:
    """Counts of one place. Compiled code finds them by number: what runs while a graph is traced takes constants only.
    Calls inside compiled graphs are not counted, since counting would break the graph; their traces are."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.calls, self.traced, self.copied, self.fallbacks = 0, 0, 0, Counter[str]()
        _tallies[self.number] = self

    def call(self) -> None:
        """The kernel is called."""
        if torch.compiler.is_compiling():
            _count_traced(self.number, "")
        else:
            self.calls += 1

    def fall_back(self, reason: str) -> None:
        """For this reason the kernel is not called."""
        if torch.compiler.is_compiling():
            _count_traced(self.number, reason)
        else:
            self.fallbacks[reason] += 1

    @property
    def seen(self) -> bool:
        return bool(self.calls or self.traced or self.fallbacks)


@torch.compiler.assume_constant_result
def _count_traced(number: int, reason: str) -> bool:
    tally = _tallies.get(number)
    if tally is not None and reason:
        tally.fallbacks[f"{reason} (in a compiled graph, counted once)"] += 1
    elif tally is not None:
        tally.traced += 1
    return True
