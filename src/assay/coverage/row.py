"""One planned workload, the pairs of levels it visits, and how much a plan may try."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.workload import Workload

Level = tuple[str, str]
"""(factor, level), e.g. ("rows", "2ᵏ+1") or ("values", "wide")."""
Pair = tuple[Level, Level]


def ordered(a: Level, b: Level) -> Pair:
    """Return the two levels in the order in which pairs are counted."""
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True)
class Effort:
    """The budget of a plan, which depends on where the kernel runs."""

    workloads: int
    """The most workloads that visit pairs; those for attributes and ragged sizes are limited to a part of it."""
    elements: int
    """The most elements of a usual workload, over all tensors."""
    most: int
    """The most elements of a workload with a long axis, or around a constant."""
    typical: int
    """The number of elements above which the typical workload is shortened."""
    constants: int
    """The most workloads around the kernel's constants."""
    problems: int = 0
    """The greatest length of an axis that counts problems (`Axis.problems`); 0: as long as any other."""
    related: int = 24
    """The most pairs of axes tried at equal lengths; a third as many are tried with one a multiple of the other."""
    at_length: int = 0
    """The most workloads of the typical sizes with other attributes and with values that repeat or ascend."""
    longer: int = 0
    """The elements of a typical workload with one axis longer; 0: there is none."""
    huge: int = 0
    """The most elements of a huge workload, and of a typical one that is not shortened, if results are independent
    along an axis; 0: there is no huge workload."""

    past_32_bits: bool = False
    """Whether to try a tensor with more elements than a signed 32-bit integer can count, too."""

    again: int = 12
    """The most workloads that repeat earlier sizes."""

    def times(self, factor: int) -> Effort:
        return replace(self, **{name: getattr(self, name) * factor for name in _GROWING})


_GROWING = ("workloads", "most", "typical", "constants", "at_length", "again")


@dataclass(frozen=True)
class Planned:
    workload: Workload
    why: str
    """`typical`, `near typical`, `beyond typical`, `at length`, `masked`, `huge`, `past 2³¹`, `equal axes`, `ragged`,
    `attribute`, `multiples`, `pairs`, `constant 768`, `branch cols > 9`, `branch rows > 128, cols > 9`,
    `branch cols > 9, many rows`, `more than 65535 rows`, `launch` or
    `again`"""
    pairs: frozenset[Pair] = frozenset()
    """The pairs that it visits. Levels without effect do not count: the strides of a single row, and everything but the
    size of an empty tensor."""
    cost: int = 0
    """Elements of all tensors, plus a sixteenth of the operations, plus a constant for every problem of a batch."""
    before: Workload | None = None
    """A workload that the kernel is called with first; its result is not judged."""
