"""The evidence of an inspection: which code it is, and what follows from its instructions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from assay.evidence import Evidence, Figure


@dataclass(frozen=True)
class Shared:
    """Bytes of shared memory a block."""

    static: int
    dynamic: int


@dataclass(frozen=True)
class Spills:
    """Bytes that each thread moves to and from local memory, if every such instruction runs once."""

    stores: int
    loads: int

    @property
    def most(self) -> int:
        return max(self.stores, self.loads)


@dataclass(frozen=True)
class Occupancy:
    """How many warps of a kernel a multiprocessor can hold."""

    block: int = 0
    """Threads of a block."""
    blocks: int = 0
    """Blocks that fit at once."""
    warps: int = 0
    share: float | None = None
    """The share of the warps that a multiprocessor can hold; None if the number of threads of a block is unknown."""
    limits: tuple[str, ...] = ()
    """What prevents one more block: `registers`, `shared memory`, `warps`, `blocks`; empty where none fits at all."""
    lift: str = ""
    """The change that would make room for one more block."""
    by_block: tuple[Occupancy, ...] = ()
    """One entry for each of several block sizes, if the launch's block size is unknown."""
    unavailable: str = ""
    """Why the occupancy is unknown."""


@dataclass(frozen=True)
class MultiplyAdd:
    """Floating-point instructions that multiply and add, fused and separate."""

    fused: int
    multiplies: int
    adds: int


@dataclass(frozen=True)
class Loop:
    """An innermost loop."""

    start: int
    end: int
    depth: int
    instructions: int
    line: int | None
    copies: int
    """Estimated copies of the body: how often the same access, special function or matrix product stands in it."""
    cycles: int
    """Cycles to issue the body once."""


@dataclass(frozen=True)
class Summary:
    """Everything a record keeps beside the instructions."""

    instructions: Annotated[int, Figure("", "instructions", "of the kernel", "instructions")]
    registers: Annotated[int | None, Figure("", "registers", "that each thread has", "registers")]
    stack: int | None
    spills: Spills
    shared: Shared
    occupancy: Occupancy
    multiply_add: MultiplyAdd
    mix: dict[str, int]
    """Instructions by pipe."""
    widths: dict[str, dict[str, int]]
    """`{"global load": {"128": 4}}`: how many accesses of how many bits."""
    predicated: float
    loops: list[Loop]
    cycles_per_block: dict[int, int]
    cycles: int | None
    """Cycles on the longest path through the kernel; None where a loop's count is unknown."""
    live_registers: int | None = None
    assumptions: list[str] = field(default_factory=list)
    remarks: list[str] | None = None
    """The remarks that ptxas prints."""


@dataclass(frozen=True)
class Block:
    """Instructions without a branch among them."""

    number: int
    start: int
    end: int
    follows: tuple[int, ...]
    loop_depth: int


@dataclass(frozen=True)
class Gates:
    expects: dict[str, Any]
    broken: list[str]


@dataclass(frozen=True)
class Launch:
    grid: list[int]
    block: list[int]
    shared: int = 0


@dataclass(frozen=True)
class InspectEvidence(Evidence):
    target: str = ""
    symbol: str = ""
    name: str = ""
    compiler: str = ""
    text_hash: str = ""
    launch: Launch | None = None
    parameters: dict[str, Any] | None = None
    """Tunables that were set for this run."""
    summary: Summary | None = None
    blocks: list[Block] | None = None
    gates: Gates | None = None
    unavailable: list[str] | None = None
    """What is missing from this record, and why."""


@dataclass(frozen=True)
class DiffEvidence(Evidence):
    """The difference of two kernels' code."""

    counts: dict[str, int] | None = None
    """Pairs of instructions by kind of difference."""
    equal: bool | None = None
    summaries: list[Summary] | None = None
    changes: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class SinceEvidence(Evidence):
    """The difference of one kernel's code in two runs."""

    target: str = ""
    compilers: list[str] | None = None
    text_hashes: list[str] | None = None
    source_changed: bool | None = None
    counts: dict[str, int] | None = None
