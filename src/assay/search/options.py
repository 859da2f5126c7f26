"""The options of `assay search`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assay import provenance

PARTS = ("weights", "inputs")
MODES = ("train", "compress", "recover")
"""Of an architecture: trained; trained and compressed; trained, compressed and trained further."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of all studies."""

    trials: int = 30
    """Finished trials in the end, including those of earlier runs of the study."""
    sampler: str = "tpe"
    seeds: tuple[int, ...] = (0,)
    """Each is a separate study with its own base model and sampler."""
    quick: bool = False
    """Use a subset of the data, and a base model trained for few epochs; records say so."""
    tokens: int = 0
    """Maximum number of tokens of each text; 0: the data set's usual number."""
    device: str = ""
    workers: int | None = None
    """Processes that run trials concurrently; None: one, or on a cluster one per core, or per GPU."""
    ray: str = ""
    """Address of the Ray cluster that runs the trials; empty: this machine."""
    timeout: float = 3600.0
    """Seconds for one trial."""
    memory: float = 0.0
    """Limit of the resident memory of a trial's process, in GiB; 0: its share of 80 % of its machine's memory."""
    storage: str = ""
    """File or URL; empty: a file in the data folder."""
    study: str = ""
    """The study's name; empty: derived from its settings, so that the same command resumes it."""
    restart: bool = False
    """Delete the study and begin again."""
    save: Path | None = None
    """File for the winner."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True, kw_only=True)
class Precision(Common):
    formats: tuple[str, ...] = ("fixed",)
    """Each is a separate study."""
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    offsets: tuple[int, ...] = (0,)
    """For fixed point: offsets to the number of fraction bits that fits a tensor best."""
    of: tuple[str, ...] = PARTS
    epochs: int = 0
    """Epochs of training in each trial with the formats in place (QAT), and of the control; 0: none (PTQ)."""
    goals: tuple[str, ...] = ("bits",)
    points: float | None = 0.5
    """Allowed percentage points below the control's validation accuracy; None: any number."""
    seed_by_sensitivity: bool = False
    """Begin with the points that a sensitivity pass suggests; its evaluations are ordinary trials."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Common):
    """Each tensor alone at each width: the whole grid is evaluated, and there is no winner."""

    sampler: str = "grid"
    format: str = "fixed"
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    of: tuple[str, ...] = PARTS


@dataclass(frozen=True, kw_only=True)
class Architecture(Common):
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Knobs to search, with their values; without values, all that the knob declares. Empty: all knobs."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options and knobs of the model that are not searched."""
    data: str = ""
    """Data set; empty: the model's own."""
    training: int = 0
    """Epochs; 0: those of the model's recipe."""
    modes: tuple[str, ...] = ("train",)
    """`train`; `compress`: the trained model is quantised; `recover`: and trained further. Each is a separate study."""
    format: str = "int:4:channel"
    """Format in modes `compress` and `recover`."""
    of: tuple[str, ...] = ("weights",)
    recover: int = 1
    """Epochs of further training in mode `recover`."""
    goals: tuple[str, ...] = ("accuracy",)
    points: float | None = None
    """Allowed percentage points below the accuracy of the model's usual shape; None: any number."""
