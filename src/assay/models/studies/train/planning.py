"""What a user may set of a training, and what follows from it before anything heavy is touched."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay import host, provenance
from assay.errors import UsageError
from assay.models.studies import study
from assay.models.studies.train.evidence import Config
from assay.models.subject.data.digits import DATASETS, dataset
from assay.models.subject.registry import Entry, entry

IMAGES, VALIDATION = 60_000, 5_000
"""Of the training split, the images at its end choose the best epoch. The test split is read once, after the choice."""


SETTINGS = ("epochs", "batch", "seed", "lr", "weight_decay", "patience")
"""Options that the outcome depends on, whatever the model."""


@dataclass(frozen=True)
class Options:
    """What a user may set."""

    epochs: int = 5
    batch: int = 64
    seed: int = 0
    lr: float = 3e-3
    weight_decay: float = 0.01
    patience: int = 3
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the model: {"activation": "relu"}."""
    data: str = ""
    """Empty: the model's own; mnist for a user's."""
    images: int = 0
    """So many of each split alone, for a quick try; 0: all."""
    device: str = ""
    """cuda or cpu; empty: the GPU where there is one."""
    threads: int = 0
    """On the CPU; 0: all cores."""
    swap: Mapping[str, str] = field(default_factory=dict)
    """Kernels to train with: {"gelu": "gelu/triton"}."""
    resume: bool = False
    checkpoint: Path | None = None
    """Default: one file for each model, set of options, data set and seed, in the data folder."""
    weights: Path | None = None
    """Where the best epoch's weights go; default: where other verbs look for them."""
    every: float = 30.0
    """Seconds between checkpoints within an epoch."""
    target: float = 0.0
    """The test accuracy below which the run is a failure; 0: none."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Plan:
    entry: Entry
    options: Options
    data: str
    device: str
    checkpoint: Path
    weights: Path

    @property
    def settings(self) -> dict[str, Any]:
        return {name: getattr(self.options, name) for name in SETTINGS}

    @property
    def steps(self) -> int:
        """If all epochs are needed."""
        most = IMAGES - VALIDATION
        return self.options.epochs * math.ceil(min(self.options.images or most, most) / self.options.batch)

    @property
    def config(self) -> Config:
        """What two runs must share to be one; in the checkpoint and in the record."""
        return Config(
            model=self.entry.name,
            options=self.entry.chosen(self.options.options),
            data=self.data,
            images=self.options.images,
            **self.settings,
            device=self.device,
            threads=self.options.threads or len(os.sched_getaffinity(0)),
            swap=dict(self.options.swap),
        )

    @property
    def workload(self) -> str:
        about = {"data": self.data, **self.config.options, **self.settings}
        return "train " + ",".join(f"{k}={v}" for k, v in about.items())

    @property
    def replay(self) -> str:
        """The command for the same run: only what differs from the defaults."""
        words, default = ["assay model train", self.entry.name], Options()
        for name in (*SETTINGS, "data", "images", "threads"):
            if (value := getattr(self.options, name)) != getattr(default, name):
                words.append(f"--{name.replace('_', '-')} {value}")
        words += [f"--{k} {v}" for k, v in self.options.options.items()]
        words += [f"--swap {k}={v}" for k, v in self.options.swap.items()]
        return " ".join([*words, f"--device {self.device}"])


def plan(model: str, options: Options) -> Plan:
    known = entry(model)
    chosen = known.chosen(options.options)
    data = options.data or (known.data if known.module else "mnist")
    if known.module and known.data not in DATASETS:
        raise UsageError(f"{model} cannot be trained: there is no data set for it", fix="train mnist-cnn, or your own")
    dataset(data)
    for name, least in (("epochs", 1), ("batch", 1), ("patience", 1), ("images", 0), ("threads", 0)):
        if getattr(options, name) < least:
            raise UsageError(f"{name}: {getattr(options, name)}", fix=f"{least} or more")
    if not 0 < options.lr < math.inf:
        raise UsageError(f"a learning rate of {options.lr}", fix="--lr 0.003")
    device = study.device(options.device)
    usual = known.weights_file(**chosen)
    # Other verbs look in the usual place: only weights of a whole run on the model's own data may go there.
    unusual = [
        *([data] if data != (known.data or "mnist") else []),
        *([f"{options.images}images"] * bool(options.images)),
    ]
    stem = "-".join([usual.stem, *unusual])
    weights = options.weights or usual.with_stem(stem)
    kept = options.checkpoint or host.data_folder() / "checkpoints" / f"{stem}-seed{options.seed}.safetensors"
    return Plan(known, options, data, device, kept, weights)
