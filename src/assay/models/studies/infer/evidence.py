"""What `assay model infer` measured of one variant in one arm at one batch size. Whatever is kept for both ways stands
under `torch` and `variant`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from assay.bench.statistics import Estimate
from assay.evidence import Evidence, Figure
from assay.models.packed.account import Account
from assay.models.packed.compare import Comparison
from assay.models.studies.agreement import Errors, wrong
from assay.models.subject.score import Score
from assay.models.swap.report import Site

ENOUGH, BY_CHANCE = 16, 4.0
"""Elements of batches from which on two right ways do not differ by the tolerance; and of fewer, how many times
the tolerance they do not differ by."""


@dataclass(frozen=True)
class Outputs:
    """Errors against the model in float64, in units of one rounding."""

    torch: Errors
    variant: Errors
    share: float
    """Of the tolerance: above 1 it is wrong."""
    ratio: float | None = None
    note: str = ""
    compared: Comparison | None = None
    """For variants that change weights by design, which no tolerance for rounding fits."""
    elements: int = 0
    """Of batches that it was judged on."""

    @property
    def wrong(self) -> str:
        return wrong("torch", self.torch, self.variant, self.share, self.note)


@dataclass(frozen=True)
class Called:
    """A kernel at one place, however often it is called there in one pass."""

    site: str
    """As the swap's report has it; of several pairs in one module, all of them."""
    path: str
    """The innermost module in whose forward it runs."""
    op: str
    """What the site computes: `layernorm+gelu` for a pair."""
    form: str
    kernel: str
    workloads: dict[str, int]
    """Workload → calls in one pass."""
    operator: str = ""
    """`assay::gelu__triton`."""


@dataclass(frozen=True)
class Alone:
    """Seconds of one call by itself."""

    cold: float
    hot: float


@dataclass(frozen=True)
class Promise:
    """Seconds of all calls of a site by themselves, or why they are not known."""

    why: str = ""
    torch: Alone | None = None
    kernel: Alone | None = None
    copied: bool = False
    """PyTorch's time holds a copy of the result, which no model makes."""


@dataclass(frozen=True)
class Inside:
    """Seconds of a site in one pass of the model."""

    torch: float
    kernel: float


@dataclass(frozen=True)
class Row(Called):
    """A site with its times."""

    calls: int = 1
    alone: Promise = field(default_factory=Promise)
    in_model: Inside | None = None
    exceeds: bool = False
    """Whether its time in the model exceeds the whole pass, alone or with the other sites, so that nothing follows from
    it."""
    share: float | None = None
    """Of torch's whole pass."""


@dataclass(frozen=True)
class Gain:
    saving: float
    speedup: float | None = None
    """None: more is saved than there is."""


@dataclass(frozen=True)
class Predicted:
    """What the model would gain if every second saved at a site were saved: by the times alone, cold and hot, and by
    the times in the model."""

    why: str = ""
    """Why nothing can be expected of the kernels' times alone."""
    cold: Gain | None = None
    hot: Gain | None = None
    in_model: Gain | None = None
    """None also if the time of a site exceeds the whole pass."""


@dataclass(frozen=True)
class Layer:
    """Seconds of a module's own work in one pass."""

    path: str
    torch: float | None = None
    variant: float | None = None


@dataclass(frozen=True)
class Profile:
    """Seconds of the pass that sites and layers come from, and how much of it is accounted for."""

    total: float
    wall: float
    unattributed: float | None = None
    between: float | None = None


@dataclass(frozen=True)
class Boundary:
    """Seconds of one call of a kernel through each way, or why there are none."""

    why: str = ""
    workload: str = ""
    direct: float | None = None
    operator: float | None = None
    site: float | None = None
    training: float | None = None
    gradient: float | None = None


@dataclass(frozen=True)
class Compiling:
    seconds: float
    graphs: int
    breaks: int
    break_reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """The newest recorded training with these kernels, or why there is none."""

    why: str = ""
    seconds_per_epoch: float | None = None
    batch: int | None = None
    run: str = ""


@dataclass(frozen=True)
class InferEvidence(Evidence):
    study: str = "infer"
    variant: str = ""
    rules: dict[str, str] = field(default_factory=dict)
    """What was swapped; empty for torch itself."""
    arm: str = ""
    batch: int = 0
    """Without arm and batch: the variant as a whole."""
    dtype: str = ""
    device: str = ""
    mode: str = ""
    """Of its process: native, or an interpreter."""
    weights: dict[str, str] | None = None
    parameter_count: int | None = None
    model_bytes: dict[str, int] | None = None
    threads: int | None = None
    tf32: bool | None = None
    swap: list[Site] | None = None
    """What became of every site."""
    outputs: Outputs | None = None
    suspect: str = ""
    """The first module that is off."""
    failure: dict[str, Any] | None = None
    method: str = ""
    """How it was timed."""
    throughput: Annotated[float | None, Figure("1/s", "per s", "elements of batches")] = None
    latency: dict[str, Estimate] | None = None
    """Seconds of a pass, the device waited for."""
    streamed: dict[str, Estimate] | None = None
    """Seconds of a pass, the host ahead of the device."""
    device_seconds: dict[str, float] | None = None
    busy: dict[str, float] | None = None
    """Share of a pass in which something runs on the GPU."""
    baseline: str = ""
    torch_samples: list[list[float]] | None = None
    speedup: Estimate | None = None
    """Over torch in the same arm, round by round."""
    saving: Estimate | None = None
    """Seconds of a pass, round by round."""
    predicted: Predicted | None = None
    sites: list[Row] | None = None
    layers: list[Layer] | None = None
    profile: dict[str, Profile] | None = None
    unprofiled: str = ""
    """Why there is no profile."""
    call_bytes: dict[str, int] | None = None
    peak_bytes: dict[str, int] | None = None
    memory_how: str = ""
    packed: Account | None = None
    compile: dict[str, Compiling] | None = None
    boundary: dict[str, Boundary | str] | None = None
    """Kernel → what a call costs; `why` alone where nothing could be measured."""
    score: Score | dict[str, str] | None = None
    """Or why it could not be measured."""
    training: Training | None = None

    @property
    def whose(self) -> str:
        """Under which name its own figures stand."""
        return "variant" if self.rules else "torch"

    @property
    def accuracy(self) -> float | None:
        return self.score.value if isinstance(self.score, Score) else None
