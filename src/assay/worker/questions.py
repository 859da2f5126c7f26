"""What a worker can be asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from assay.worker.messages import Answer, Request
from assay.worker.request import Call, TensorSpec

Count = Annotated[int, Ge(0)]
Seconds = Annotated[float, Ge(0)]


class Summary(TypedDict):
    """What a record keeps of the code that was started (assay.artifact)."""

    name: str
    symbol: str
    target: str
    compiler: str
    ptx_bytes: Count
    cubin_bytes: Count
    text_hash: str
    source_hash: str
    registers: int | None
    shared: int | None
    spills: int | None
    doubt: str


@dataclass(frozen=True)
class Done(Answer):
    """It was done; there is nothing to say."""


# check


@dataclass(frozen=True)
class Change(Answer):
    """Something that was changed for the whole process."""

    name: str
    before: str
    after: str
    instead: str
    """How to have it without touching others."""
    when: str = ""


@dataclass(frozen=True)
class Tried(Answer):
    """One call of the kernel, and what it did beside computing."""

    seconds: Seconds
    forks: Count
    read_outside: str
    """What an interpreter saw being read outside the tensors."""
    returned: str
    """What was returned by a kernel that should return nothing, in words."""
    settings: list[Change]
    replaced: list[str]
    """Names of functions that the kernel replaced by its own."""
    artifacts: list[Summary]
    compared: list[int]
    """Integers that the PTX started compares registers with."""
    alias: str = ""
    """Of a kernel that returns its results: what else has their memory, in words."""
    delayed: Count = 0
    """Pieces of code that were built with delays so far."""


@dataclass(frozen=True)
class Try(Request[Tried], answered_by="assay.worker.execute:trial"):
    """Call a kernel once, on buffers that the parent has filled."""

    call: Call
    device: str
    trial: int
    """Calls of one trial share their places."""
    places: dict[str, tuple[int, ...]]
    """By tensor: where in the arena its buffers begin, one for each place."""
    copies: dict[str, int]
    """By output: where a copy goes of what it held when the call returned."""
    place: int = 0
    first: bool = False
    """Tell which code was started."""
    threads: int = 0
    """For a CPU kernel; 0: as they are."""
    programs: int = 1 << 62
    """Of one launch in an interpreter, at most."""
    fence: str = ""
    """On which side of the tensors there is no memory on a GPU: `before`, `behind` or neither."""
    order: str = ""
    """In which an interpreter runs the programs of a grid (backends.grid_order)."""
    busy: bool = False
    """Another thread of the process works at the same time."""
    thread: bool = False
    """The call comes from a new thread, not from the one that imported the kernel's file."""
    load: str = ""
    """What keeps a GPU busy meanwhile: `blocks` or `memory`."""
    late: str = ""
    """On a GPU the inputs arrive only after a while on the current stream: `queued`, or `arrived` before the call."""
    delays: str = ""
    """Of worker.delays, in all calls of a worker: what is built once stays as it is."""


@dataclass(frozen=True)
class Evaluate(Request[Done], answered_by="assay.worker.execute:reference"):
    """The op's reference in the workload's dtype on a device: plain PyTorch's own outputs, into the arena."""

    op: str
    op_file: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena: int
    attributes: dict[str, Any]
    device: str
    vendor: bool = True
    """Whether PyTorch may use the vendors' libraries of products and convolutions, oneDNN and cuDNN."""


# Building, without running


@dataclass(frozen=True)
class Launched(Answer):
    grid: list[int]
    block: list[int]
    shared: Count
    artifact: Summary
    parts: dict[str, Count] = field(default_factory=dict)
    """Bytes of each piece of code in the arena, one after another."""


@dataclass(frozen=True)
class Built(Answer):
    launches: list[Launched]

    @property
    def shared_bytes(self) -> int:
        return sum(sum(each.parts.values()) for each in self.launches)


@dataclass(frozen=True)
class Build(Request[Built], answered_by="assay.worker.execute:build"):
    """What the kernel would launch on a workload, built for a target."""

    call: Call
    target: str


@dataclass(frozen=True)
class Compile(Request[Built], answered_by="assay.worker.execute:compiled"):
    """The same with the GPU hidden, and all that was built in the arena: PTX, cubin and intermediate code."""

    call: Call
    target: str
    compiler: str = ""


# bench


@dataclass(frozen=True)
class Fetched(Answer):
    """A timed call whose outputs lie in the arena: which values it had, and which poison its outputs held before."""

    variation: int
    seed: int
    set: int
    sets: int
    poison: int


@dataclass(frozen=True)
class Timed(Answer):
    """Samples of one round, in seconds of one call."""

    first_call: float
    artifacts: list[Summary]
    cold: list[float]
    busy: list[float]
    """Processor time of the cold batches; empty on a GPU."""
    hot: list[float]
    call: list[float]
    batch: Annotated[int, Ge(1)]
    single: Annotated[int, Ge(1)]
    """Calls of a sample of `call`."""
    sets: Annotated[int, Ge(1)]
    cold_enough: bool
    held: bool
    sm_hz: list[float | None]
    method: str
    fetched: dict[Literal["cold", "hot"], Fetched]
    cache: Count
    """Bytes of the last cache."""
    peak_bytes: Count | None = None
    """That one call allocates at its most; of the first round on a GPU."""
    prepared_bytes: Count | None = None
    """That a preparation keeps; None where there is none."""


@dataclass(frozen=True)
class Finding(Answer):
    """What a kernel did that it must not do while it is timed."""

    detector: str
    what: str


@dataclass(frozen=True)
class Uncapturable(Answer):
    """The kernel's calls cannot become a graph."""

    why: str


@dataclass(frozen=True)
class Round:
    """What all that is timed shares."""

    device: str
    samples: int
    """Of cold calls, at most."""
    others: int
    """Samples of hot calls, of single calls, and of yardsticks other than the copy, at most."""
    seconds: float
    """For one kind of time, at most."""
    threads: int
    most_bytes: int
    capture: bool = True
    """Put batches into graphs, where there is a GPU."""


@dataclass(frozen=True)
class Time(Request[Timed | Uncapturable | Finding], answered_by="assay.worker.measure:timed"):
    """One round of a benchmark."""

    call: Call
    round: Round
    workload: str
    number: int
    """Of the round."""
    variations: int
    """Sets of values that were drawn for the inputs."""
    changeable: tuple[str, ...]
    """Inputs whose elements may take each other's values."""
    fetch: tuple[str, ...] = ()
    """Kinds of batches of which the outputs of one call are fetched."""
    keep: bool = False
    """Keep a batch for `Repeat`."""


@dataclass(frozen=True)
class Prepared(Answer):
    """A kernel that was called for the first time, which builds it."""

    first_call: Seconds
    """Of the file's import and the first call."""


@dataclass(frozen=True)
class Prepare(Request[Prepared], answered_by="assay.worker.measure:prepared"):
    """Build the kernel of a benchmark by calling it."""

    time: Time


@dataclass(frozen=True)
class Open(Request[Done], answered_by="assay.worker.measure:opened"):
    """Start using a device, which takes a second on a GPU."""

    device: str


@dataclass(frozen=True)
class Repeat(Request[Done], answered_by="assay.worker.measure:again"):
    """Run a cold batch of the last round so many times, for the parent to time by its own clock. 0: nothing runs,
    which shows what asking costs; less: it is not needed any more."""

    times: int


@dataclass(frozen=True)
class Yardstick(Answer):
    seconds: list[float]
    bytes: Count
    form: str


@dataclass(frozen=True)
class Yardsticks(Answer):
    copy: Yardstick
    sm_hz: list[float | None]
    """During the copies."""
    cache: Count
    read: Yardstick | None = None
    write: Yardstick | None = None

    @property
    def cold(self) -> list[float]:
        return self.copy.seconds


@dataclass(frozen=True)
class TimeYardsticks(Request[Yardsticks], answered_by="assay.worker.measure:yardsticks"):
    """The fastest copy, read and write of as many bytes."""

    round: Round
    bytes: int
    beyond_cache: float
    """Times the last cache from which a CPU's reads and writes are timed."""


@dataclass(frozen=True)
class Watch(Request[Done], answered_by="assay.worker.activity:watch"):
    """Start the device's own record of what runs."""


@dataclass(frozen=True)
class Activity(Answer):
    """What the device itself says ran, per call."""

    seconds: float
    launches: float
    names: dict[str, int]
    streams: Count


@dataclass(frozen=True)
class Observe(Request[Activity], answered_by="assay.worker.measure:observed"):
    """The calls of a round under the device's own record."""

    time: Time
    calls: int
