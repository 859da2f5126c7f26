"""What `assay model train` measured: what was learnt, how fast, and by which kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from assay.evidence import Evidence, Figure
from assay.models.subject.score import Score
from assay.models.swap.report import Site


@dataclass(frozen=True)
class Config:
    """What two runs must share to be one."""

    model: str = ""
    options: dict[str, str] = field(default_factory=dict)
    data: str = ""
    items: int = 0
    """Of each split; 0: all."""
    tokens: int = 0
    """Of each text, at most; 0: these are no texts."""
    initial: str = ""
    """SHA-256 of the file of weights that it started from; empty: the initial weights of the seed."""
    epochs: int = 0
    batch: int = 0
    seed: int = 0
    lr: float = 0.0
    """The highest rate, after warming up."""
    weight_decay: float = 0.0
    patience: int = 0
    """Epochs without a better validation accuracy after which training ends."""
    device: str = ""
    threads: int = 0
    tf32: bool = False
    """Whether a GPU multiplies float32 in TF32 in training steps; scores are in float32."""
    swap: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Epoch:
    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    seconds: float

    @property
    def merit(self) -> tuple[float, float]:
        """The larger, the better."""
        return self.validation_accuracy, -self.validation_loss


@dataclass(frozen=True)
class Data:
    name: str
    sizes: dict[str, int]
    """Items of each split."""
    sha256: dict[str, str]
    """Of the files."""


@dataclass(frozen=True)
class Swapped:
    """The report of the swap."""

    model: str
    rules: dict[str, str]
    active: bool
    sites: list[Site]


@dataclass(frozen=True)
class Weights:
    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Memory:
    bytes: int
    of: str


@dataclass(frozen=True)
class TrainEvidence(Evidence):
    config: Config = field(default_factory=Config)
    parameters: int | None = None
    resumed: str = ""
    """Where an earlier run was gone on with."""
    diverged: str = ""
    """Where the loss was no longer a number."""
    data: Data | None = None
    epochs: list[Epoch] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Steps done, and the mean training loss since the point before."""
    best_epoch: int | None = None
    stopped_early: bool | None = None
    test: Score | None = None
    seconds_per_epoch: Annotated[float | None, Figure("s", "epoch", "the epoch in the middle")] = None
    swap: Swapped | None = None
    weights: Weights | None = None
    cpu_seconds: Annotated[float | None, Figure("s", "CPU time", "of all threads together")] = None
    peak_memory: Memory | None = None
    envelope: dict[str, Any] | None = None
    """What the same training with several seeds spans, where a run was held against it."""
