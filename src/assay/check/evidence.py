"""The evidence for a verdict of `check`."""

from dataclasses import dataclass
from typing import Annotated, Any

from assay.evidence import Evidence, Figure
from assay.inspect.evidence import Gates
from assay.record import Record


@dataclass(frozen=True)
class OutputError:
    """The error of one output, in the bin of elements that came closest to its tolerance."""

    share: float
    """The error as a share of its tolerance: 1 is where a kernel fails."""
    ratio: float | None = None
    """The kernel's error over PyTorch's; None where PyTorch has none."""
    kernel: dict[str, Any] | None = None
    torch: dict[str, Any] | None = None
    where: Any = None
    workload: str = ""


@dataclass(frozen=True)
class Coverage:
    """Which combinations of levels were visited, and which were not and why."""

    pairs: int
    """Pairs that the contract has."""
    visited: int
    workloads: dict[str, int]
    """How many workloads of each origin."""
    not_visited: dict[str, Any]
    """Pairs, or workloads, by reason."""
    examples: dict[str, list[str]]
    """Pairs that no workload can visit, by reason."""
    left_out: dict[str, list[str]]
    """Workloads that were planned and not run, by reason."""
    constants: dict[str, Any]
    """Constants of the kernel's own code that sizes and values were planned around."""
    largest: int
    """Cost of the largest workload that was run."""
    launches: dict[str, int] | None = None
    """How many workloads led to each launch in the kernel's source, if it has several."""


@dataclass(frozen=True)
class CallSeconds:
    cold: float
    """The first call, compilation included."""
    hot: float
    """The median."""


@dataclass(frozen=True)
class Racecheck:
    """The sanitizer's report on a kernel that uses shared memory, or whose results change."""

    clean: bool
    problems: list[str]
    trouble: str = ""
    """Why it gave no verdict."""


@dataclass(frozen=True)
class Delays:
    """Calls of a kernel whose warps waited at random before they accessed memory, which changes no honest result."""

    clean: bool
    workloads: list[str]
    """On which it was called."""
    codes: int
    """Pieces of code that were built so; 0: the language hides what it builds."""
    problem: str = ""
    """What was wrong with a result."""
    trouble: str = ""
    """Why it gave no verdict."""


@dataclass(frozen=True)
class Past32Bits:
    """What the addresses show that some programs of a Triton kernel access if a tensor has more than 2³¹ elements."""

    workloads: list[str]
    """Those whose launches were looked at."""
    programs: int
    """How many programs were run."""
    problem: str = ""
    """The access whose offset overflows 32 bits."""
    stores: bool = False
    where: str = ""
    """Its file and line."""
    trouble: str = ""
    """Why not every launch could be looked at."""


@dataclass(frozen=True)
class CheckEvidence(Evidence):
    detector: str = ""
    """On failure: the detector that noticed it."""
    found_at: str = ""
    """On failure: the workload before it was shrunk."""
    trace: str = ""
    workloads: Annotated[int | None, Figure("", "workloads", "that were run", "workloads")] = None
    mode: str = ""
    """The worker's mode: `native`, `triton-interpret` or `numba-sim`."""
    device: str = ""
    target: str = ""
    """What the code was built for; absent where the verdict is only about what ran in an interpreter or on the CPU."""
    interpreted: bool | None = None
    errors: dict[str, OutputError] | None = None
    """By output."""
    largest_over_torch: Annotated[float | None, Figure("×", "error over PyTorch's", "of the largest")] = None
    deterministic: bool | None = None
    nondeterministic_workloads: int | None = None
    admitted_workloads: int | None = None
    """Workloads on which the error is within its tolerance only because another order in float32 loses as much."""
    torch_wrong: dict[str, list[str]] | None = None
    """Workloads on which PyTorch is wrong with a vendor's library or an arithmetic that leaves its range, by what is
    wrong. The kernel was held against PyTorch without it."""
    controls_rejected: dict[str, str] | None = None
    """Wrong outputs that the judge made itself, and how many of them it rejected."""
    beyond_range: dict[str, int] | None = None
    """Outputs for inputs outside the range that the op declares, counted by how they differ: reported, not judged."""
    coverage: Coverage | None = None
    call_seconds: CallSeconds | None = None
    instances: int | None = None
    """Instances that were built, if the kernel could not run here."""
    gates: Gates | None = None
    racecheck: Racecheck | None = None
    delays: Delays | None = None
    past_32_bits: Past32Bits | None = None
    asked_workloads: int | None = None
    """How many workloads the user asked for; absent where that was left to the plan."""
    parameters: dict[str, Any] | None = None
    """Tunables that were set for this run."""
    written_for: list[str] | None = None
    """The dtypes that the kernel is written for, if it was skipped because this one is not among them."""

    @property
    def worst_share(self) -> float | None:
        """The error closest to its tolerance, over all outputs."""
        return max((e.share for e in (self.errors or {}).values()), default=None)


def first_seen(record: Record) -> str:
    """Return the workload on which a check failed first, if the record's is another: the smallest one that fails may
    hide a clue. Empty otherwise."""
    found_at = CheckEvidence.of(record).found_at if record.verb == "check" and record.failed else ""
    return found_at if found_at != record.workload else ""
