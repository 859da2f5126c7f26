"""The options of a training, and the plan made from them before anything expensive is done."""

from __future__ import annotations

import hashlib
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
from assay.models.subject.data.labelled import DataSet
from assay.models.subject.entry import Entry
from assay.models.subject.registry import entry
from assay.models.subject.suitable import OWN_DATA, data_of

SETTINGS = ("epochs", "batch", "seed", "lr", "weight_decay", "patience")
"""Options on which the outcome depends, for any model."""
LEAST_TOKENS = 8
"""Minimum number of tokens of a text: the two that mark its ends, and a few words."""


@dataclass(frozen=True)
class Options:
    """Options of a training. None means the value of the model's recipe."""

    epochs: int | None = None
    batch: int | None = None
    seed: int = 0
    lr: float | None = None
    weight_decay: float | None = None
    patience: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Options and knobs of the model: {"activation": "relu"}."""
    data: str = ""
    """Data set; empty: the model's own, or mnist for a user's model."""
    items: int = 0
    """Number of images or reviews used of each split, for a quick try; 0: all."""
    tokens: int = 0
    """Maximum number of tokens of each text; 0: as many as there are positions."""
    initial: Path | None = None
    """File of weights to start from; default: those named in the registry, else the initial ones of the seed."""
    device: str = ""
    """cuda or cpu; empty: the GPU if there is one."""
    threads: int = 0
    """CPU threads; 0: all cores."""
    swap: Mapping[str, str] = field(default_factory=dict)
    """Kernels to train with: {"gelu": "gelu/triton"}."""
    resume: bool = False
    checkpoint: Path | None = None
    """Default: one file for each model, set of options, data set and seed, in the data folder."""
    weights: Path | None = None
    """File for the best epoch's weights; default: the one where other verbs look for them."""
    every: float = 30.0
    """Seconds between checkpoints within an epoch."""
    target: float = 0.0
    """Test accuracy below which the run fails; 0: none."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Plan:
    entry: Entry
    options: Options
    data: DataSet
    settings: Mapping[str, Any]
    """Values of SETTINGS."""
    tokens: int
    initial: str
    """SHA-256 of the weights to start from; empty: there is no file."""
    device: str
    checkpoint: Path
    weights: Path

    @property
    def steps(self) -> int:
        """Number of steps if all epochs are needed."""
        most = self.data.sizes["train"]
        steps: int = self.settings["epochs"] * math.ceil(min(self.options.items or most, most) / self.settings["batch"])
        return steps

    @property
    def config(self) -> Config:
        """Settings that must match for a checkpoint to be resumed; in the checkpoint and in the record."""
        return Config(
            model=self.entry.name,
            options=self.entry.chosen(self.options.options),
            data=self.data.name,
            items=self.options.items,
            tokens=self.tokens,
            initial=self.initial,
            **self.settings,
            device=self.device,
            threads=self.options.threads or len(os.sched_getaffinity(0)),
            swap=dict(self.options.swap),
        )

    @property
    def workload(self) -> str:
        length = {"tokens": self.tokens} if self.tokens else {}
        about = {"data": self.data.name, **length, **self.config.options, **self.settings}
        return "train " + ",".join(f"{k}={v}" for k, v in about.items())

    @property
    def replay(self) -> str:
        """The command for the same run, with only the options that differ from their defaults."""
        words, default = ["assay model train", self.entry.name], Options()
        for name in SETTINGS:
            if (value := self.settings[name]) != getattr(self.entry.recipe, name, default.seed):
                words.append(f"--{name.replace('_', '-')} {value}")
        for name in ("data", "items", "tokens", "initial", "threads"):
            if (value := getattr(self.options, name)) != getattr(default, name):
                words.append(f"--{name} {value}")
        words += [f"--set {k}={v}" for k, v in self.entry.unusual(self.options.options).items()]
        words += [f"--swap {k}={v}" for k, v in self.options.swap.items()]
        return " ".join([*words, f"--device {self.device}"])


def plan(model: str, options: Options) -> Plan:
    known = entry(model)
    chosen = known.chosen(options.options)
    data = data_of(known, options.data)
    settings = {name: _setting(known, options, name) for name in SETTINGS}
    for name, least in (("epochs", 1), ("batch", 1), ("patience", 1), ("items", 0), ("threads", 0)):
        value = settings[name] if name in settings else getattr(options, name)
        if value < least:
            raise UsageError(f"{name}: {value}", fix=f"{least} or more")
    if not 0 < settings["lr"] < math.inf:
        raise UsageError(f"a learning rate of {settings['lr']}", fix=f"--lr {known.recipe.lr}")
    tokens = _tokens(data, options)
    device = study.device(options.device)
    usual = known.weights_file(**chosen)
    # Other verbs look in the usual place, so only weights of a full run on the model's own data may go there.
    unusual = [
        *([data.name] if data.name != (known.data or OWN_DATA) else []),
        *([f"{options.items}{data.item}s"] * bool(options.items)),
        *([f"{tokens}tokens"] * (tokens != data.tokens)),
    ]
    stem = "-".join([usual.stem, *unusual])
    weights = options.weights or usual.with_name(f"{stem}.safetensors")
    kept = options.checkpoint or host.data_folder() / "checkpoints" / f"{stem}-seed{options.seed}.safetensors"
    return Plan(known, options, data, settings, tokens, _initial(known, options), device, kept, weights)


def _setting(known: Entry, options: Options, name: str) -> Any:
    asked = getattr(options, name)
    return getattr(known.recipe, name) if asked is None else asked


def _tokens(data: DataSet, options: Options) -> int:
    if options.tokens and not data.tokens:
        raise UsageError(f"--tokens {options.tokens}: {data.name} has {data.item}s", fix="leave it out")
    if options.tokens and not LEAST_TOKENS <= options.tokens <= data.tokens:
        raise UsageError(f"tokens: {options.tokens}", fix=f"{LEAST_TOKENS} to {data.tokens}")
    return options.tokens or data.tokens


def _initial(known: Entry, options: Options) -> str:
    if options.initial:
        try:
            return hashlib.sha256(options.initial.read_bytes()).hexdigest()
        except OSError:
            raise UsageError(f"no file {options.initial}", fix="name weights of this model or of its encoder") from None
    return known.starts_from.file("model.safetensors").sha256 if known.starts_from else ""
