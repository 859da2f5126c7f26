"""What a user may set of `assay search`, and the studies that follow from it: one for each format and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from assay import provenance
from assay.compress import templates
from assay.compress.planning import WIDTHS
from assay.errors import UsageError
from assay.models.studies import study
from assay.models.subject.data.datasets import DATASETS, dataset
from assay.models.subject.registry import ENTRIES, Entry, entry
from assay.search import samplers
from assay.search.goals import Goals
from assay.search.setup import Setup

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
    workers: int = 1
    """Processes that do trials at the same time."""
    timeout: float = 3600.0
    """Seconds for one trial."""
    memory: float = 0.0
    """GiB that the process of a trial may have resident; 0: its share of 80 % of what this machine has."""
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


@dataclass(frozen=True)
class Planned:
    """One study."""

    name: str
    setup: Setup
    file: Path | None
    """Where its winner goes."""


@dataclass(frozen=True)
class Plan:
    kind: str
    entry: Entry
    options: Common
    studies: tuple[Planned, ...]
    goals: Goals
    replay: str
    """The command, without seed and format."""
    control: bool = True
    """Whether a control is judged first."""
    trials: int | None = None
    """Of each study; None: the whole space."""
    winner: bool = True
    """Whether there is one."""

    @property
    def memory(self) -> int:
        """Bytes of one process."""
        if self.options.memory:
            return round(self.options.memory * (1 << 30))
        return int(psutil.virtual_memory().total * 0.8 / self.options.workers)


def precision(model: str, options: Precision) -> Plan:
    known = _verified(model, options)
    goals = Goals.of(options.goals, options.points)
    if "latency" in options.goals:
        raise UsageError(
            "precisions are searched without latency: few formats have a kernel that computes with them",
            fix="choose --goal bits or accuracy,bits, and measure the winner",
        )
    setups = []
    for format in options.formats:
        for seed in options.seeds:
            setups.append(
                Setup(
                    kind="precision",
                    model=model,
                    device=study.device(options.device),
                    quick=options.quick,
                    tokens=options.tokens,
                    seed=seed,
                    format=_template(format, options.widths, options.offsets),
                    widths=tuple(sorted(set(options.widths))),
                    offsets=tuple(sorted(set(options.offsets))),
                    of=_parts(options.of),
                    epochs=options.epochs,
                )
            )
    words = [f"assay search precision {model} --trials {options.trials} --sampler {options.sampler}"]
    words += [f"--width {','.join(map(str, options.widths))} --of {','.join(options.of)}"]
    words += [f"--goal {','.join(options.goals)}"] + (
        [f"--points {options.points:g}"] if options.points is not None else []
    )
    words += [f"--epochs {options.epochs}"] * bool(options.epochs) + ["--quick"] * options.quick
    return Plan(
        "precision", known, options, _named(options, setups, goals), goals, " ".join(words), trials=options.trials
    )


def architecture(model: str, options: Architecture) -> Plan:
    known = _verified(model, options, options.data)
    for mode in options.modes:
        if mode not in MODES:
            raise UsageError(f"no mode called '{mode}'", fix=f"--mode with one or more of {','.join(MODES)}")
    if not options.modes:
        raise UsageError("there is nothing to do", fix=f"--mode with one or more of {','.join(MODES)}")
    goals = Goals.of(options.goals, options.points)
    compressed = templates.of_width(templates.written_out(options.format), None)
    if options.training < 0 or options.recover < 0:
        raise UsageError("fewer than 0 epochs", fix="0 or more")
    setups = [
        Setup(
            kind="architecture",
            model=model,
            data=options.data,
            device=study.device(options.device),
            quick=options.quick,
            tokens=options.tokens,
            seed=seed,
            format=compressed if mode != "train" else "",
            of=_parts(options.of) if mode != "train" else (),
            epochs=options.recover if mode == "recover" else 0,
            mode=mode,
            training=options.training,
            fixed=dict(options.fixed),
            knobs={name: tuple(values) for name, values in options.knobs.items()},
            latency="latency" in options.goals,
        )
        for mode in options.modes
        for seed in options.seeds
    ]
    words = [f"assay search architecture {model} --trials {options.trials} --sampler {options.sampler}"]
    words += [f"--knob {name}={','.join(values)}".rstrip("=") for name, values in options.knobs.items()]
    words += [f"--set {name}={value}" for name, value in options.fixed.items()]
    words += [f"--data {options.data}"] * bool(options.data) + [f"--training {options.training}"] * bool(
        options.training
    )
    words += [f"--goal {','.join(options.goals)}"]
    words += [f"--points {options.points:g}"] if options.points is not None else []
    words += [f"--tokens {options.tokens}"] * bool(options.tokens) + ["--quick"] * options.quick
    return Plan(
        "architecture",
        known,
        options,
        _named(options, setups, goals),
        goals,
        " ".join(words),
        control=options.points is not None,
        trials=options.trials,
    )


def _verified(model: str, options: Common, data: str = "") -> Entry:
    samplers.verify(options.sampler)
    if options.trials < 1:
        raise UsageError(f"{options.trials} trials", fix="--trials with 1 or more")
    if options.workers < 1:
        raise UsageError(f"{options.workers} workers", fix="--workers with 1 or more")
    if not options.seeds:
        raise UsageError("there is nothing to do", fix="name at least one seed: --seeds 0,1,2")
    known = entry(model)
    if data:
        dataset(data)
    elif known.data not in DATASETS:
        fix = f"search {', '.join(name for name, e in ENTRIES.items() if e.data in DATASETS)}, or name --data"
        raise UsageError(f"{model} has no data to be trained on and judged by", fix=fix)
    return known


def _template(format: str, widths: tuple[int, ...], offsets: tuple[int, ...]) -> str:
    template = templates.written_out(format)
    if "W" not in template.split(":"):
        fix = f"name one with W for its width: {', '.join(templates.SHORT.values())}"
        raise UsageError(f"'{format}' has no width to be searched", fix=fix)
    if any(offsets) and "F" not in template.split(":"):
        raise UsageError(f"'{template}' has no fraction to be searched", fix="leave out --offsets, or search fixed")
    if not widths:
        raise UsageError("there are no widths to be searched", fix="--width 2,4,8")
    for width in widths:
        if width not in WIDTHS:
            fix = f"write widths from {WIDTHS[0]} to {WIDTHS[-1]}: --width 2,4,8"
            raise UsageError(f"a width of {width}", fix=fix)
        templates.of_width(template, width)
    return template


def _parts(of: tuple[str, ...]) -> tuple[str, ...]:
    for part in of:
        if part not in PARTS:
            raise UsageError(f"the precision of '{part}' cannot be searched", fix=f"--of {','.join(PARTS)}")
    if not of:
        raise UsageError("there is nothing to be searched", fix=f"--of {','.join(PARTS)}")
    return tuple(part for part in PARTS if part in of)


def _named(options: Common, setups: list[Setup], goals: Goals) -> tuple[Planned, ...]:
    """Each study with its name. Where there are several, a name that was given is followed by what differs."""
    made = []
    for setup in setups:
        label = "-".join(filter(None, (setup.format.replace(":", "_"), setup.mode)))
        tail = f"{f'-{label}' if label else ''}-seed{setup.seed}"
        if options.study:
            name = options.study + (tail if len(setups) > 1 else "")
        else:
            digest = hashlib.sha256(json.dumps(identity(options, setup, goals), sort_keys=True).encode()).hexdigest()
            name = f"{setup.kind}-{setup.model}-{options.sampler}{tail}-{digest[:8]}"
        file = options.save
        if file is not None and len(setups) > 1:
            file = file.with_name(f"{file.stem}{tail}{file.suffix or '.safetensors'}")
        made.append(Planned(name, setup, file))
    return tuple(made)


def identity(options: Common, setup: Setup, goals: Goals) -> Mapping[str, Any]:
    """What makes a study another one; how many trials it has, and where they are done, does not."""
    told = {name: value for name, value in setup.plain().items() if name != "device"}
    return told | {
        "sampler": options.sampler,
        "goals": [goal.name for goal in goals.goals],
        "points": goals.points,
    }
