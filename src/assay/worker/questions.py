"""The questions that a worker can be asked, and their answers."""

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
    """A summary of code that was started, for a record (assay.artifact)."""

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
    """The request was done; there is nothing else to say."""


# check


@dataclass(frozen=True)
class Change(Answer):
    """Something that was changed for the whole process."""

    name: str
    before: str
    after: str
    instead: str
    """How to get the effect without changing it for others."""
    when: str = ""


@dataclass(frozen=True)
class Tried(Answer):
    """One call of the kernel, and its effects besides computing."""

    seconds: Seconds
    forks: Count
    read_outside: str
    """A read outside the tensors that an interpreter saw, in words."""
    work: Count
    """Operations that an interpreter counted; 0 if it counts none."""
    programs: Count
    """The most programs of a launch that it counted."""
    returned: str
    """What a kernel returned that should return nothing, in words."""
    settings: list[Change]
    replaced: list[str]
    """Names of functions that the kernel replaced by its own."""
    artifacts: list[Summary]
    compared: list[int]
    """Integers that the PTX of the started code compares registers with."""
    alias: str = ""
    """What else has the memory of the results that a kernel returned, in words."""
    delayed: Count = 0
    """Pieces of code that were built with delays so far."""


@dataclass(frozen=True)
class Try(Request[Tried], answered_by="assay.worker.execute:trial"):
    """Call a kernel once, on buffers that the parent has filled."""

    call: Call
    device: str
    trial: int
    """The number of the trial, whose calls share their places."""
    places: dict[str, tuple[int, ...]]
    """The offsets in the arena of each tensor's buffers, one for each place."""
    copies: dict[str, int]
    """The offset in the arena for a copy of each output as it was when the call returned."""
    place: int = 0
    first: bool = False
    """Whether to report which code was started."""
    threads: int = 0
    """Threads for a CPU kernel; 0: as they are."""
    programs: int = 1 << 62
    """The most programs of one launch in an interpreter."""
    fence: str = ""
    """The side of the tensors on which there is no memory on a GPU: `before`, `behind` or neither."""
    order: str = ""
    """The order in which an interpreter runs the programs of a grid (backends.grid_order)."""
    busy: bool = False
    """Whether another thread of the process works at the same time."""
    thread: bool = False
    """Whether the call comes from a new thread, not from the one that imported the kernel's file."""
    load: str = ""
    """What keeps a GPU busy meanwhile: `blocks` or `memory`."""
    late: str = ""
    """On a GPU: `queued`, the inputs arrive late on the current stream; `arrived`, the call waits for them."""
    shared: str = "nan"
    """What is left in the shared memory of a GPU before the call (worker.disturb)."""
    delays: str = ""
    """The kind of delays (worker.delays) in all calls of a worker: what is built once stays as it is."""


@dataclass(frozen=True)
class Examined(Answer):
    """What the addresses show that a few programs of a kernel's launches access."""

    programs: Count
    """How many programs were run, of all launches."""
    parameter: str = ""
    """If an offset overflows 32 bits: the parameter of the launched function that is the tensor."""
    index: Count = 0
    """The element whose offset overflows."""
    stores: bool = False
    program: tuple[int, ...] = ()
    file: str = ""
    line: Count = 0
    trouble: str = ""
    """Why not all of them could be examined."""


@dataclass(frozen=True)
class Addresses(Request[Examined], answered_by="assay.worker.addresses:examine"):
    """Call a kernel in Triton's interpreter on tensors that have addresses and no memory."""

    call: Call
    programs: int
    """The most programs of a launch."""
    operations: int
    """The most operations of a program."""


@dataclass(frozen=True)
class Evaluate(Request[Done], answered_by="assay.worker.execute:reference"):
    """Evaluate the op's reference in the workload's dtype on a device: plain PyTorch's own outputs, into the arena."""

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
    cluster: int = 1


@dataclass(frozen=True)
class Built(Answer):
    launches: list[Launched]

    @property
    def shared_bytes(self) -> int:
        return sum(sum(each.parts.values()) for each in self.launches)


@dataclass(frozen=True)
class Build(Request[Built], answered_by="assay.worker.execute:build"):
    """Build what the kernel would launch on a workload, for a target."""

    call: Call
    target: str


@dataclass(frozen=True)
class Compile(Request[Built], answered_by="assay.worker.execute:compiled"):
    """Do the same with the GPU hidden, and put all that was built into the arena: PTX, cubin and intermediate code."""

    call: Call
    target: str
    compiler: str = ""


@dataclass(frozen=True)
class LaunchLines(Answer):
    lines: list[list[int]]
    """For each call the lines of the kernel's file that launch something; none if the function cannot be run so."""


@dataclass(frozen=True)
class FindLaunches(Request[LaunchLines], answered_by="assay.worker.launch_sites:find_launches"):
    """Run the kernel's Python for each of the calls, on tensors without memory, and find the lines that would launch
    something. Nothing is built or launched."""

    calls: list[Call]
    target: str
    seconds: float


# bench


@dataclass(frozen=True)
class Fetched(Answer):
    """A timed call whose outputs are in the arena: which values it had, and which poison its outputs held before."""

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
    """Calls in a sample of `call`."""
    sets: Annotated[int, Ge(1)]
    cold_enough: bool
    held: bool
    sm_hz: list[float | None]
    method: str
    fetched: dict[Literal["cold", "hot"], Fetched]
    cache: Count
    """Bytes of the last cache."""
    peak_bytes: Count | None = None
    """The most bytes that one call allocates; only in the first round on a GPU."""
    prepared_bytes: Count | None = None
    """Bytes that a preparation keeps; None if there is none."""


@dataclass(frozen=True)
class Finding(Answer):
    """Something that a kernel did and must not do while it is timed."""

    detector: str
    what: str


@dataclass(frozen=True)
class Uncapturable(Answer):
    """The kernel's calls cannot be captured into a graph."""

    why: str


@dataclass(frozen=True)
class Round:
    """The settings shared by all that is timed."""

    device: str
    samples: int
    """The most samples of cold calls."""
    others: int
    """The most samples of hot calls, of single calls, and of yardsticks other than the copy."""
    seconds: float
    """The most seconds for one kind of time."""
    threads: int
    most_bytes: int
    capture: bool = True
    """Whether to capture batches into graphs on a GPU."""


@dataclass(frozen=True)
class Time(Request[Timed | Uncapturable | Finding], answered_by="assay.worker.measure:timed"):
    """One round of a benchmark."""

    call: Call
    round: Round
    workload: str
    number: int
    """The number of the round."""
    variations: int
    """The number of sets of values drawn for the inputs."""
    changeable: tuple[str, ...]
    """Inputs whose elements may take each other's values."""
    fetch: tuple[str, ...] = ()
    """Kinds of batches for which the outputs of one call are fetched."""
    keep: bool = False
    """Whether to keep a batch for `Repeat`."""


@dataclass(frozen=True)
class Prepared(Answer):
    """A kernel that was called for the first time, which builds it."""

    first_call: Seconds
    """Seconds of the file's import and the first call."""


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
    """Run a cold batch of the last round `times` times, for the parent to time by its own clock. With 0 nothing runs,
    which shows what asking costs; a negative number drops the batch."""

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
    """The SM clock during the copies."""
    cache: Count
    read: Yardstick | None = None
    write: Yardstick | None = None

    @property
    def cold(self) -> list[float]:
        return self.copy.seconds


@dataclass(frozen=True)
class TimeYardsticks(Request[Yardsticks], answered_by="assay.worker.measure:yardsticks"):
    """Time the fastest copy, read and write of that many bytes."""

    round: Round
    bytes: int
    beyond_cache: float
    """The multiple of the last cache from which a CPU's reads and writes are timed."""


@dataclass(frozen=True)
class Watch(Request[Done], answered_by="assay.worker.activity:watch"):
    """Start the device's own record of what runs."""


@dataclass(frozen=True)
class Activity(Answer):
    """What ran according to the device itself, per call."""

    seconds: float
    launches: float
    names: dict[str, int]
    streams: Count


@dataclass(frozen=True)
class Observe(Request[Activity], answered_by="assay.worker.measure:observed"):
    """Run the calls of a round under the device's own record."""

    time: Time
    calls: int
