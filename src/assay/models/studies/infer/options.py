"""What a user may set of `assay model infer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay import provenance

ARMS = {
    "eager": "as written, one operator after the other",
    "compiled": "by torch.compile, the kernels inside its graph",
    "graphed": "captured once into a CUDA graph, and replayed",
}
BATCHES = (1, 16, 32, 64, 128, 1024)
BUDGET = {"cuda": 0.25, "cpu": 1.0}
"""Seconds for each arm at each batch size, where nothing is said."""


@dataclass(frozen=True)
class Effort:
    rounds: int = 10
    """Each takes every arm, with and without the kernels, beginning with another one."""
    budget: float = 0.0
    """Seconds for each arm at each batch size; a batch of which one call takes longer is left out. 0: by device."""
    passes: int = 5
    """Under the profiler; the one in the middle is kept."""
    threads: int = 0
    """On the CPU; 0: as torch chooses."""
    seed: int = 0
    alone_rounds: int = 5
    alone_budget: float = 1.0
    """Of the stand-alone times, as `assay bench` takes them: seconds for each kernel and workload, at most; and at most
    four times `budget`, so that who asks for less gets less of everything."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Trained:
    """One training of the model that somebody recorded."""

    swap: Mapping[str, str]
    device: str
    seconds_per_epoch: float
    batch: int
    run: str


@dataclass(frozen=True)
class Options:
    batches: tuple[int, ...] = BATCHES
    dtype: str = "fp32"
    device: str = ""
    """cuda or cpu; empty: the GPU where there is one."""
    arms: tuple[str, ...] = tuple(ARMS)
    variants: tuple[str, ...] = ()
    """By name; empty or `all`: every one that the model has sites for (with `swap`: that alone)."""
    swap: Mapping[str, str] = field(default_factory=dict)
    """The user's own variant: {"gelu": "gelu/triton"}."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the model: {"activation": "relu"}."""
    weights: Path | None = None
    """A file; None: those trained or published here, else random ones."""
    score: bool | None = None
    """Whether each variant's accuracy is measured; None: where the data is here already."""
    alone: tuple[int, ...] | None = None
    """Batch sizes at which kernels are timed alone, too; None: the smallest and the largest."""
    backend: str = "inductor"
    """Of torch.compile."""
    effort: Effort = field(default_factory=Effort)
    timeout: float = 600.0
    """Seconds for one question to one process."""
    trained: tuple[Trained, ...] = ()
    """Recorded trainings of this model, newest last."""
    run: str = field(default_factory=provenance.new_run)
