"""One planned workload, the pairs of levels it visits, and how much a plan may try."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.workload import Workload

Level = tuple[str, str]
"""(factor, level), e.g. ("rows", "2ᵏ+1") or ("values", "wide")."""
Pair = tuple[Level, Level]


def ordered(a: Level, b: Level) -> Pair:
    """The two in the order in which pairs are counted."""
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True)
class Effort:
    """How much is tried, by where the kernel runs."""

    workloads: int
    """The most workloads besides those of the typical workload and of the kernel's constants."""
    elements: int
    """The most elements of a usual workload, over all tensors."""
    most: int
    """The most elements of a workload with a long axis, or around a constant."""
    typical: int
    """Above this many elements, the typical workload's leading axis is shortened."""
    constants: int
    """The most workloads around the kernel's constants."""
    problems: int = 0
    """How long an axis that counts problems may be (`Axis.problems`); 0: as long as any other."""
    related: int = 24
    """The most pairs of axes that have equal lengths; a third as many have one a multiple of the other."""
    huge: int = 0
    """The most elements of a huge workload, and up to which the typical one is not shortened either, where results are
    independent along an axis; 0: there is none."""

    past_32_bits: bool = False
    """Whether a tensor has more elements than a signed 32-bit integer can count, too."""

    again: int = 12
    """The most workloads that come back to sizes that were tried before."""

    def times(self, factor: int) -> Effort:
        more = {name: getattr(self, name) * factor for name in ("workloads", "most", "typical", "constants", "again")}
        return replace(self, **more)


@dataclass(frozen=True)
class Planned:
    workload: Workload
    why: str
    """`typical`, `near typical`, `huge`, `past 2³¹`, `equal axes`, `ragged`, `attribute`, `multiples`, `pairs`,
    `constant 768`, `branch cols > 9`, `branch rows > 128, cols > 9`, `branch cols > 9, many rows`,
    `more than 65535 rows` or `again`"""
    pairs: frozenset[Pair] = frozenset()
    """The pairs that it visits. Strides of a single row, and anything but the size of an empty tensor, have no effect
    and are not visited."""
    cost: int = 0
    """Elements of all tensors, a sixteenth of the operations, and more for every problem of a batch."""
    before: Workload | None = None
    """What the kernel is called with first; that result is not judged."""
