"""Turns options into studies: one for each format or mode, and seed. Options that make no sense are refused here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from assay.compress import templates
from assay.compress.latency import rule
from assay.compress.planning import WIDTHS
from assay.errors import UsageError
from assay.models.studies import study
from assay.models.subject.data.datasets import DATASETS, dataset
from assay.models.subject.entry import Entry
from assay.models.subject.registry import ENTRIES, entry
from assay.search import samplers
from assay.search.goals import Goals
from assay.search.options import MODES, PARTS, Architecture, Common, Precision, Sensitivity
from assay.search.setup import Setup


@dataclass(frozen=True)
class Planned:
    """One study."""

    name: str
    setup: Setup
    file: Path | None
    """File for its winner."""

    def on(self, device: str) -> Planned:
        return replace(self, setup=replace(self.setup, device=device))


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
    """Trials of each study; None: the whole space."""
    winner: bool = True
    """Whether a winner is chosen."""
    seeded: bool = False
    """Whether a sensitivity pass comes before the sampler."""

    @property
    def memory(self) -> int:
        """Limit of one process's resident memory, in bytes."""
        if self.options.memory:
            return round(self.options.memory * (1 << 30))
        return int(psutil.virtual_memory().total * 0.8 / (self.options.workers or 1))


def precision(model: str, options: Precision) -> Plan:
    known = _verified(model, options)
    goals = Goals.of(options.goals, options.points)
    if "latency" in options.goals:
        _refuse_without_kernels(options)
    within = options.goals == ("bits",) and options.points is not None and "weights" in options.of
    if options.seed_by_sensitivity and not within:
        what = "a sensitivity pass seeds a search for the fewest bits of weights within an allowance"
        raise UsageError(what, fix="--goal bits, --points 0 or more, and weights among --of")
    setups = [
        Setup(
            kind="precision",
            **_common(model, options, seed),
            format=_template(format, options.widths, options.offsets),
            widths=tuple(sorted(set(options.widths))),
            offsets=tuple(sorted(set(options.offsets))),
            of=_parts(options.of),
            epochs=options.epochs,
            latency="latency" in options.goals,
        )
        for format in options.formats
        for seed in options.seeds
    ]
    words = [f"assay search precision {model} --trials {options.trials} --sampler {options.sampler}"]
    words += [f"--width {','.join(map(str, options.widths))} --of {','.join(options.of)}"]
    words += [f"--offsets {','.join(map(str, options.offsets))}"] * any(options.offsets)
    words += [f"--goal {','.join(options.goals)}"] + (
        [f"--points {options.points:g}"] if options.points is not None else []
    )
    words += [f"--epochs {options.epochs}"] * bool(options.epochs) + _of_data(options)
    words += ["--seed-by-sensitivity"] * options.seed_by_sensitivity
    return Plan(
        "precision",
        known,
        options,
        _named(options, setups, goals),
        goals,
        " ".join(words),
        trials=options.trials,
        seeded=options.seed_by_sensitivity,
    )


def sensitivity(model: str, options: Sensitivity) -> Plan:
    known = _verified(model, options)
    goals = Goals.of(("accuracy",), None)
    setups = [
        Setup(
            kind="sensitivity",
            **_common(model, options, seed),
            format=_template(options.format, options.widths, ()),
            widths=tuple(sorted(set(options.widths))),
            of=_parts(options.of),
        )
        for seed in options.seeds
    ]
    words = [f"assay search sensitivity {model} --width {','.join(map(str, options.widths))}"]
    words += [f"--of {','.join(options.of)}", *_of_data(options)]
    return Plan("sensitivity", known, options, _named(options, setups, goals), goals, " ".join(words), winner=False)


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
            **_common(model, options, seed),
            data=options.data,
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
    words += _of_data(options)
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


def _refuse_without_kernels(options: Precision) -> None:
    """Raise UsageError if a model of the search would only simulate its formats, so that latency means nothing."""
    fix = "--format int:W:channel --width 4,8 --of weights; or another goal, and measure the winner"
    if options.of != ("weights",):
        raise UsageError("no kernel computes with inputs in fewer bits, so their latency cannot be measured", fix=fix)
    for format in options.formats:
        template = _template(format, options.widths, options.offsets)
        for width in options.widths:
            form = templates.of_width(template, width)
            if not rule(form):
                raise UsageError(f"no kernel computes with {form}, so its latency cannot be measured", fix=fix)


def _of_data(options: Common) -> list[str]:
    """Return the words of a command that choose the data."""
    return [f"--tokens {options.tokens}"] * bool(options.tokens) + ["--quick"] * options.quick


def _common(model: str, options: Common, seed: int) -> dict[str, Any]:
    """Return the fields that all setups have in common."""
    device = _device(options)
    return {"model": model, "device": device, "quick": options.quick, "tokens": options.tokens, "seed": seed}


def _device(options: Common) -> str:
    """Return the device; empty: decided by what the cluster's nodes have."""
    if not options.ray:
        return study.device(options.device)
    if options.device not in ("", "cuda", "cpu"):
        raise UsageError(f"no device called '{options.device}'", fix="--device cuda or cpu")
    return options.device


def _verified(model: str, options: Common, data: str = "") -> Entry:
    samplers.verify(options.sampler)
    if options.trials < 1:
        raise UsageError(f"{options.trials} trials", fix="--trials with 1 or more")
    if options.workers is not None and options.workers < 1:
        raise UsageError(f"{options.workers} workers", fix="--workers with 1 or more")
    if not options.seeds:
        raise UsageError("there is nothing to do", fix="name at least one seed: --seeds 0,1,2")
    known = entry(model)
    if data:
        dataset(data)
    elif known.data not in DATASETS:
        fix = f"search {', '.join(name for name, e in ENTRIES.items() if e.data in DATASETS)}"
        fix += "; `assay search architecture` takes --data"
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
    """Return the studies with their names. If there are several, a name from the options gets a suffix for each."""
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
    """Return the settings that identify a study. How many trials it has and where they run are not among them."""
    told = {name: value for name, value in setup.plain().items() if name != "device"}
    return told | {
        "sampler": options.sampler,
        "goals": [goal.name for goal in goals.goals],
        "points": goals.points,
        "seeded": getattr(options, "seed_by_sensitivity", False),
    }
