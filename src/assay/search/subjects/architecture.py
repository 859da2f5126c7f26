"""The shape of a model: each point is built, trained and, depending on the mode, compressed and trained further."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from assay import provenance
from assay.compress import items, saved
from assay.compress.layers import layers
from assay.compress.planning import Point as Compression
from assay.compress.prepared import treatments
from assay.compress.task import Doing, Task
from assay.compress.treatment import treat
from assay.errors import SourceError, UsageError
from assay.models.subject.entry import Entry
from assay.models.subject.knobs import Knob
from assay.models.subject.registry import declared, entry
from assay.search import device_lock
from assay.search.latency import latency
from assay.search.setup import Setup
from assay.search.subjects.subject import Built, Infeasible, Judged, described

if TYPE_CHECKING:
    from torch import nn

    from assay.models.subject.data.labelled import Labelled
    from assay.search.space import Space

_LOOKED_AT = 2
"""Elements of the batch on which a knob must have an effect."""


class Architecture:
    def __init__(self, setup: Setup, tick: Doing) -> None:
        known = declared(entry(setup.model))
        self.setup, self.tick = setup, tick
        self.entry = replace(known, data=setup.data) if setup.data else known

    @cached_property
    def task(self) -> Task:
        setup = self.setup
        return Task.of(self.entry, setup.device, setup.quick, setup.tokens, self.tick)

    def space(self) -> Space:
        return searched(self.entry, self.setup)

    def sizes(self) -> dict[str, int]:
        return asdict(self.task.sizes)

    def control(self, test: bool = False) -> Judged:
        """Judge the model's usual shape."""
        return self.judged({}, test)

    def judged(self, point: Mapping[str, str], test: bool = False, file: Path | None = None) -> Judged:
        with device_lock.shared(self.setup.device) if self.setup.latency else nullcontext():
            judged, model = self._judged(point, test, file)
        if not self.setup.latency:
            return judged
        import torch

        inputs = tuple(self.task.validation.inputs(slice(0, 1), torch.float32))
        return replace(judged, latency=latency(model, inputs, self.setup.device))

    def _judged(self, point: Mapping[str, str], test: bool, file: Path | None) -> tuple[Judged, nn.Module]:
        setup = self.setup
        task = replace(self.task, options=self._options(point))
        self._build(point)  # fails here, before training, if it cannot be built
        model = task.trained(setup.seed, setup.training)
        done = {}
        if setup.mode != "train":
            done = treatments(model, Compression("quantize", "ptq", format=setup.format, of=setup.of), task, setup.seed)
            treat(layers(model), done)
        if setup.mode == "recover":
            task.train_on(model, setup.epochs, setup.seed)
        with tempfile.TemporaryDirectory() as folder:
            place = file or Path(folder) / "model.safetensors"
            written = saved.save(model, place, self.entry.name, done, task.options)
            again = saved.load(place).to(setup.device)
        judged = Judged(
            accuracy=_share(again, task.validation),
            bits=sum(written.bits.values()),
            weights=sum(p.numel() for p in again.parameters()),
            test=_share(again, task.test) if test else None,
            file=provenance.shown(file) if file else "",
            layers=[described(path, treatment) for path, treatment in done.items()],
        )
        return judged, again

    def built(self, point: Mapping[str, str]) -> Built:
        return Built(self._build(point), self.entry.example(_LOOKED_AT))

    def _build(self, point: Mapping[str, str]) -> nn.Module:
        """Build the model with initial weights. If it refuses the values, or a user's function fails, the combination
        is infeasible."""
        try:
            return self.entry.build(self.setup.seed, **self._options(point))
        except (UsageError, SourceError) as problem:
            raise Infeasible(problem.what) from None

    def _options(self, point: Mapping[str, str]) -> dict[str, str]:
        return {**self.setup.fixed, **point}


def searched(known: Entry, setup: Setup) -> Space:
    """Return the model's knobs to search; the others keep their fixed or default values."""
    if not known.knobs:
        raise UsageError(
            f"{known.name} declares no knobs",
            fix='search bert-tiny, or declare yours beside your function: KNOBS = {"depth": ["1", "2", "4"]}',
        )
    for name in setup.knobs:
        if name not in known.knobs:
            names = [n for n in known.knobs if "." not in n]
            raise UsageError(f"{known.name} has no knob '{name}'", fix=f"it has: {', '.join(names)}")
    made: dict[str, Knob] = {}
    for name, knob in known.knobs.items():
        if name in setup.fixed or (setup.knobs and name not in setup.knobs):
            continue
        for value in setup.knobs.get(name, ()):
            if value not in knob.values:
                raise UsageError(f"{known.name}: no {name} '{value}'", fix=f"one of: {', '.join(knob.values)}")
        values = setup.knobs.get(name, ()) or knob.values
        default = setup.fixed.get(name, knob.default if knob.default in values else values[0])
        made[name] = Knob(values, default, knob.where)
    return _depending(made, known, setup)


def _depending(made: dict[str, Knob], known: Entry, setup: Setup) -> Space:
    """Resolve dependencies on knobs that are not searched: drop the knobs whose conditions their values do not meet."""
    kept: dict[str, Knob] = {}
    for name, knob in made.items():
        fixed = {o: setup.fixed.get(o, known.knobs[o].default) for o in knob.where if o not in made}
        if all(fixed[other] in knob.where[other] for other in fixed):
            kept[name] = replace(knob, where={o: v for o, v in knob.where.items() if o in made})
    return kept


def _share(model: nn.Module, data: Labelled) -> float:
    return float(items.right(model, data).double().mean())
