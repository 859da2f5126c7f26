"""The evidence of a time: how it was taken, its lower bounds, and what it is compared with."""

from dataclasses import dataclass
from typing import Annotated, Any

from assay.evidence import Evidence, Figure


@dataclass(frozen=True)
class Times:
    """Seconds of one call on one clock."""

    median: Annotated[float, Figure("s", "", "median over rounds", "median_s")]
    interval: Annotated[tuple[float, float], Figure("s", "interval", "of that median at 95 %, over rounds", "{}_s")]
    samples: list[list[float]] | None = None
    """Every sample it comes from, by round."""


@dataclass(frozen=True)
class Speedup:
    median: Annotated[float, Figure("×", "", "how many times faster than the baseline, round by round", "speedup")]
    interval: Annotated[tuple[float, float] | None, Figure("×", "interval", "at 95 %", "speedup_{}")] = None


@dataclass(frozen=True)
class Copy:
    """The fastest copy of as many bytes, timed in the same rounds."""

    median: Annotated[float, Figure("s", "", "of a copy of the same bytes in the same rounds", "copy_median_s")]
    interval: tuple[float, float] | None = None
    form: str = ""
    """Which copy was the fastest."""


@dataclass(frozen=True)
class Floor:
    """No cold time can be shorter than this: the op's bytes at the best speed seen in the same rounds, less 3 %."""

    seconds: float
    by: str
    """`read`, `write` or `copy`: which was the fastest."""
    gbps: float
    form: str = ""


@dataclass(frozen=True)
class Roofline:
    """The limit by the device's model."""

    bound: Annotated[str, Figure("", "bound", "`memory` or `compute`: which of the two is the limit", "roofline_bound")]
    seconds: Annotated[float, Figure("s", "seconds", "that the workload needs at the limit", "roofline_s")]
    share: Annotated[float, Figure("share", "", "of the limit that the kernel reaches", "share_of_roofline")]
    floor: float = 0.0
    """No cold time can be shorter; 0 where nothing is certain."""
    model: Annotated[str, Figure("", "model", "the device's model", "roofline_model")] = ""
    measured: bool = True
    """False: the model's figures are published ones only."""


@dataclass(frozen=True)
class WriteBack:
    """What may still be in the cache when a call ends, and how long writing it back takes."""

    bytes: int
    seconds: float


@dataclass(frozen=True)
class ParentClock:
    """The parent's own clock, compared with the worker's."""

    claimed: float
    """Seconds of one batch, as the worker claims."""
    waited: float
    """The least that the parent waited for one."""
    agrees: bool


@dataclass(frozen=True)
class SecondClock:
    """What the device itself recorded of each kernel, compared with the events."""

    agrees: bool | None = None
    """None: it was not taken."""
    why: str = ""
    """Why the two disagree, or why it was not taken."""
    seconds: Annotated[float | None, Figure("s", "", "of a call by the device's own record", "second_clock_s")] = None
    launches: float | None = None
    streams: int | None = None
    names: dict[str, int] | None = None
    """How often each kernel ran."""


@dataclass(frozen=True)
class Clocks:
    """The GPU's clocks, temperature and power during the timing."""

    sm_mhz: Annotated[float | None, Figure("MHz", "SM clock", "median over rounds", "sm_clock_mhz")] = None
    celsius: Annotated[float | None, Figure("°C", "temperature", "the hottest reading", "temperature_celsius")] = None
    watts: Annotated[float | None, Figure("W", "power", "the largest reading", "power_w")] = None
    throttle: list[str] | None = None
    """What held the clocks down in at least half of the readings."""
    throttle_passing: list[str] | None = None


@dataclass(frozen=True)
class BenchEvidence(Evidence):
    device: str = ""
    """`cuda` or `cpu`."""
    detector: str = ""
    """On failure: the detector that noticed it."""
    hot: Annotated[Times | None, Figure("s", "hot", "the same buffers again", "hot_")] = None
    call: Annotated[Times | None, Figure("s", "call", "host to host, one call at a time", "call_")] = None
    baseline: Annotated[str, Figure("", "baseline", "the kernel that speedups are over", "baseline")] = ""
    speedup: Annotated[Speedup | None, Figure("×", "speedup", "over the baseline")] = None
    bytes: Annotated[int | None, Figure("B", "bytes", "that the op must move", "moved_bytes")] = None
    operations: Annotated[int | None, Figure("", "operations", "that the op must do", "operations")] = None
    gbps: Annotated[float | None, Figure("GB/s", "GB/s", "bytes over a cold call", "bandwidth_gb_per_s")] = None
    tflops: Annotated[float | None, Figure("TFLOP/s", "TFLOP/s", "operations over a cold call", "rate_tflop_per_s")] = (
        None
    )
    copy: Annotated[Copy | None, Figure("s", "copy", "the fastest copy of the same bytes")] = None
    share_of_copy: Annotated[float | None, Figure("share", "share of copy", "of a copy's speed", "share_of_copy")] = (
        None
    )
    roofline: Annotated[Roofline | None, Figure("share", "limit", "by the machine's model")] = None
    peak_bytes: Annotated[int | None, Figure("B", "memory", "that a call allocates at its peak", "peak_bytes")] = None
    """Measured on a GPU alone."""
    launches: Annotated[float | None, Figure("", "launches", "kernels that a call launches", "launches")] = None
    compile_seconds: Annotated[float | None, Figure("s", "compile", "of the first call", "compile_s")] = None
    rounds: Annotated[int | None, Figure("", "rounds", "independent observations", "rounds")] = None
    batch: Annotated[int | None, Figure("", "batch", "calls in a sample", "batch_calls")] = None
    method: Annotated[str, Figure("", "method", "how it was timed", "method")] = ""
    peer: Annotated[str, Figure("", "peer", "how another project's kernel was run", "peer")] = ""
    prepared_bytes: Annotated[
        int | None,
        Figure("B", "prepared", "that a peer keeps of the weights, made before the timing", "prepared_bytes"),
    ] = None
    """A call reads them instead of those weights; `peer` names them. Shares and GB/s are of the op's own bytes."""
    less_accurate: Annotated[str, Figure("", "less accurate", "than our own kernels may be", "less_accurate")] = ""
    """By how much a peer's timed call exceeded that tolerance; empty where none did."""
    threads: Annotated[int | None, Figure("", "threads", "on a CPU", "threads")] = None
    clocks: Clocks | None = None
    second_clock: Annotated[SecondClock | None, Figure("s", "second clock", "the device's own record")] = None
    parent_clock: ParentClock | None = None
    sets: int | None = None
    """Buffers in the rotation."""
    cold_enough: bool | None = None
    converged: bool | None = None
    """False: the interval is wider than requested."""
    write_back: WriteBack | None = None
    floor: Floor | None = None
    start: float | None = None
    """Seconds from one graph node to the next, by the machine's model."""
    set_aside: int | None = None
    """Samples that were taken while the clocks changed."""
    parameters: dict[str, Any] | None = None
    """Tunables that were set for this run."""
    tuned: str = ""
    """With --tuned: the run of `assay tune` that these come from, or why there is none."""
