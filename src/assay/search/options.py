"""What a user may set of `assay search`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assay import provenance

PARTS = ("weights", "inputs")
MODES = ("train", "compress", "recover")
"""Of an architecture: trained; trained and compressed; trained, compressed, and trained on."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """What all studies take."""

    trials: int = 30
    """That are finished in the end, those of earlier runs of the study included."""
    sampler: str = "tpe"
    seeds: tuple[int, ...] = (0,)
    """Each is a study of its own: its base model, its sampler."""
    quick: bool = False
    """A subset of the data, and a base model trained for few epochs; the record says so."""
    tokens: int = 0
    """Of each text, at most; 0: the data set's usual number."""
    device: str = ""
    workers: int | None = None
    """Processes that do trials at the same time; None: one, or on a cluster as many as it has cores, or GPUs."""
    ray: str = ""
    """The address of a Ray cluster that does the trials; empty: this machine does."""
    timeout: float = 3600.0
    """Seconds for one trial."""
    memory: float = 0.0
    """GiB that the process of a trial may have resident; 0: its share of 80 % of what its machine has."""
    storage: str = ""
    """File or URL; empty: a file of the data folder."""
    study: str = ""
    """The study's name; empty: made of its settings, so that the same command goes on where it stopped."""
    restart: bool = False
    """Begin again: what the study has is deleted."""
    save: Path | None = None
    """Where the winner goes."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True, kw_only=True)
class Precision(Common):
    formats: tuple[str, ...] = ("fixed",)
    """Each is a study of its own."""
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    offsets: tuple[int, ...] = (0,)
    """Of fixed point: what may be added to the fraction that fits a tensor best."""
    of: tuple[str, ...] = PARTS
    epochs: int = 0
    """Of training in each trial with the formats in place (QAT), and of the control; 0: none (PTQ)."""
    goals: tuple[str, ...] = ("bits",)
    points: float | None = 0.5
    """Percentage points below the control's validation accuracy that are allowed; None: any number."""
    seed_by_sensitivity: bool = False
    """Begin with points that a sensitivity pass suggests; its evaluations are trials like all others."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Common):
    """Each tensor alone in each width: the whole grid is evaluated, and nothing is chosen."""

    sampler: str = "grid"
    format: str = "fixed"
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    of: tuple[str, ...] = PARTS


@dataclass(frozen=True, kw_only=True)
class Architecture(Common):
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Those that are searched, with their values; a knob without values has all of its own. Empty: all knobs."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options and knobs of the model that are not searched."""
    data: str = ""
    """Empty: the model's own."""
    training: int = 0
    """Epochs; 0: as the model's recipe says."""
    modes: tuple[str, ...] = ("train",)
    """`train`; `compress`: what is trained is quantised; `recover`: and trained on. Each is a study of its own."""
    format: str = "int:4:channel"
    """Of what is compressed."""
    of: tuple[str, ...] = ("weights",)
    recover: int = 1
    """Epochs of training on, in mode `recover`."""
    goals: tuple[str, ...] = ("accuracy",)
    points: float | None = None
    """Percentage points below the model's usual shape that are allowed; None: any number."""
