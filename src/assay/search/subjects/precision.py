"""The precision of each layer: a trained model with weights and inputs in a format, each tensor with its own width."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import provenance
from assay.compress import items, saved, templates
from assay.compress.formats import NumberFormat, parse
from assay.compress.latency import packs, rule
from assay.compress.layers import layers
from assay.compress.prepared import inputs_of
from assay.compress.task import Doing, Task
from assay.compress.treatment import Treatment, treat
from assay.errors import UsageError
from assay.models.subject.knobs import Knob
from assay.models.subject.registry import entry
from assay.models.swap import swap
from assay.search import device_lock
from assay.search.latency import latency
from assay.search.setup import Setup
from assay.search.subjects.subject import Built, Infeasible, Judged, described

if TYPE_CHECKING:
    from torch import Tensor, nn

    from assay.models.subject.data.labelled import Labelled
    from assay.search.space import Space

PARTS = {"weights": "weight", "inputs": "input"}
_LOOKED_AT = 32
"""Items of the training split on which a knob must have an effect."""


class Precision:
    def __init__(self, setup: Setup, tick: Doing) -> None:
        self.setup = setup
        self.task = Task.of(entry(setup.model), setup.device, setup.quick, setup.tokens, tick)
        self.base, _ = self.task.base(setup.seed, tick)
        found = layers(self.base)
        values: dict[tuple[str, str], Tensor] = {}
        if "weights" in setup.of:
            values |= {(path, "weight"): layer.weight for path, layer in found.items()}  # type: ignore[misc]
        if "inputs" in setup.of:
            values |= {(path, "input"): seen for path, seen in inputs_of(found, self.base, self.task).items()}
        self._values = values
        self._fitted: dict[tuple[str, str, int], NumberFormat] = {}

    def space(self) -> Space:
        """Return the space. Its defaults are the widest formats, which are the least likely to cost accuracy."""
        widths = tuple(map(str, sorted(self.setup.widths)))
        offsets = tuple(map(str, sorted(self.setup.offsets)))
        knobs = {}
        for path, part in sorted(self._values):
            knobs[f"{path}.{part}"] = Knob(widths, widths[-1])
            if len(offsets) > 1:
                knobs[f"{path}.{part}.offset"] = Knob(offsets, "0" if "0" in offsets else offsets[0])
        return knobs

    def sizes(self) -> dict[str, int]:
        return asdict(self.task.sizes)

    def control(self, test: bool = False) -> Judged:
        model = copy.deepcopy(self.base)
        self.task.train_on(model, self.setup.epochs, self.setup.seed)
        bits = sum(8 * t.nbytes for t in {id(t): t for t in model.state_dict().values()}.values())
        shares = self._share(model, self.task.validation), bits, self._weights(), self._test(model, test)
        return Judged(*shares, latency=self._latency({}) if self.setup.latency else None)

    def judged(self, point: Mapping[str, str], test: bool = False, file: Path | None = None) -> Judged:
        with device_lock.shared(self.setup.device) if self.setup.latency else nullcontext():
            judged = self._judged(point, test, file)
        return replace(judged, latency=self._latency(self.treatments(point))) if self.setup.latency else judged

    def _latency(self, treatments: Mapping[str, Treatment]) -> float:
        """Return the seconds of a forward pass with the linear layers packed; convolutions have no packed kernel. The
        weights are the base model's, because the time does not depend on them."""
        import torch

        inputs = tuple(self.task.validation.inputs(slice(0, 1), torch.float32))
        model = copy.deepcopy(self.base)
        found = layers(model)
        rules = {p: rule(t.weight.name) for p, t in treatments.items() if t.weight and packs(found[p])}
        with swap(model, rules) if rules else nullcontext():
            return latency(model, inputs, self.setup.device)

    def _judged(self, point: Mapping[str, str], test: bool, file: Path | None) -> Judged:
        treatments = self.treatments(point)
        model = copy.deepcopy(self.base)
        treat(layers(model), treatments)
        self.task.train_on(model, self.setup.epochs, self.setup.seed)
        with tempfile.TemporaryDirectory() as folder:
            place = file or Path(folder) / "model.safetensors"
            written = saved.save(model, place, self.task.entry.name, treatments)
            again = saved.load(place).to(self.setup.device)
        return Judged(
            accuracy=self._share(again, self.task.validation),
            bits=sum(written.bits.values()),
            weights=self._weights(),
            test=self._test(again, test),
            file=provenance.shown(file) if file else "",
            layers=[described(path, treatment) for path, treatment in treatments.items()],
        )

    def built(self, point: Mapping[str, str]) -> Built:
        import torch

        treatments = self.treatments(point)
        model = copy.deepcopy(self.base)
        found = layers(model)
        treat(found, treatments)
        few = slice(0, min(_LOOKED_AT, len(self.task.train)))
        weights: list[Any] = [(found[path].weight, t.weight) for path, t in treatments.items() if t.weight is not None]
        size = sum(int(form.layout.width * weight.numel()) for weight, form in weights)
        return Built(model, (tuple(self.task.train.inputs(few, torch.float32)), {}), size)

    def treatments(self, point: Mapping[str, str]) -> dict[str, Treatment]:
        made: dict[str, dict[str, Any]] = {}
        for path, part in self._values:
            if f"{path}.{part}" in point:
                offset = int(point.get(f"{path}.{part}.offset", "0"))
                made.setdefault(path, {})[part] = self._format(path, part, int(point[f"{path}.{part}"]), offset)
        return {path: Treatment(**forms) for path, forms in made.items()}

    def _format(self, path: str, part: str, width: int, offset: int) -> NumberFormat:
        """Return the format of one tensor, fitted to it once for each width."""
        if (path, part, width) not in self._fitted:
            chosen = templates.of_width(self.setup.format, width)
            chosen = templates.of_inputs(chosen) if part == "input" else chosen
            self._fitted[path, part, width] = templates.fitted(chosen, self._values[path, part])
        form = self._fitted[path, part, width]
        if not offset:
            return form
        kind, bits, fraction = form.name.split(":")
        try:
            return parse(f"{kind}:{bits}:{int(fraction) + offset}")
        except UsageError as problem:
            raise Infeasible(f"{path}.{part}: {problem.what}") from None

    def _share(self, model: nn.Module, data: Labelled) -> float:
        return float(items.right(model, data).double().mean())

    def _test(self, model: nn.Module, wanted: bool) -> float | None:
        return self._share(model, self.task.test) if wanted else None

    def _weights(self) -> int:
        return sum(p.numel() for p in self.base.parameters())
