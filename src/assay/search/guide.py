"""Points that a sensitivity pass suggests before the sampler takes over.

First come the widest point of the space, then each layer alone at its narrowest with all others at their widest.
Rounding noise falls to a quarter with each bit, so one loss predicts a layer's loss at every width, and the loss of
several layers is predicted as the sum. The point with the fewest bits whose predicted loss is the allowance is tried,
and the prediction is scaled by the measured loss. Then, from the best allowed point, single layers are narrowed by one
step, those that save the most bits first, until that no longer helps. Every evaluation counts as a trial of the study.

The suggestions depend only on the trials that are done, so a study that was killed resumes where it stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.search import space
from assay.search.space import Key, Point, Space

_SUGGESTIONS = 4
"""Points that are predicted from the losses of single layers."""
_STEPS = 4
"""Narrower layers that are tried from one point before it counts as the best."""
_CELLS = 100
"""Cells into which the allowance is divided to share it out among layers."""
_NOISE = 0.25
"""Factor by which the noise falls with one more bit."""
_FACTORS = 0.0, 4.0
"""Lower and upper bound of the predicted loss that is aimed at, as a multiple of the allowance."""


@dataclass
class Guide:
    knobs: Space
    points: float
    """Allowed loss against the control, in percentage points."""
    control: Mapping[str, Any]
    done: Mapping[Key, Mapping[str, Any] | None]
    """Results of each point; None if its trial failed."""
    _needed: list[Point] = field(default_factory=list, init=False)

    def wanted(self) -> list[Point]:
        """Return the points to judge next, in any order; empty once the pass is over."""
        self._needed = []
        widest = space.defaults(self.knobs)
        base = self._loss(widest)
        if base is None or base > self.points:
            return self._needed
        layers = [name for name, knob in self.knobs.items() if name.endswith(".weight") and len(knob.values) > 1]
        alone = {name: widest | {name: self.knobs[name].values[0]} for name in layers}
        lost = {name: self._loss(point) for name, point in alone.items()}
        if self._needed:
            return self._needed
        rows = [
            _Layer(name, self._widths(name), max(0.0, (lost[name] or 0.0) - base), self._saved(widest, alone[name]))
            for name in layers
        ]
        self._together(widest, rows, self.points - base)
        if not self._needed:
            self._narrower(rows)
        return self._needed

    def _loss(self, point: Point) -> float | None:
        """Return the point's loss in percentage points; if it is not known, request the point and return None."""
        if space.key(point) not in self.done:
            self._needed.append(point)
            return None
        judged = self.done[space.key(point)]
        return 100.0 if judged is None else round(100 * (self.control["accuracy"] - judged["accuracy"]), 9)

    def _saved(self, wide: Point, narrow: Point) -> float:
        """Return the bits that the narrow point saves; 0 if either point failed and its size is unknown."""
        judged = [self.done[space.key(point)] for point in (wide, narrow)]
        return float(judged[0]["bits"] - judged[1]["bits"]) if judged[0] and judged[1] else 0.0

    def _widths(self, name: str) -> list[int]:
        return list(map(int, self.knobs[name].values))

    def _together(self, widest: Point, layers: list[_Layer], allowance: float) -> None:
        """Request points whose predicted loss is the allowance times a factor, bisected by the measured losses."""
        low, high = _FACTORS
        factor = 1.0
        for _ in range(_SUGGESTIONS):
            point = widest | shared_out(layers, factor * allowance)
            loss = self._loss(point)
            if loss is None:
                return
            low, high = (factor, high) if loss <= self.points else (low, factor)
            factor = (low + high) / 2

    def _narrower(self, layers: list[_Layer]) -> None:
        """Request the best allowed point with one layer a step narrower."""
        allowed = [
            (judged["bits"], key)
            for key, judged in self.done.items()
            if judged is not None and 100 * (self.control["accuracy"] - judged["accuracy"]) <= self.points + 1e-9
        ]
        best = dict(min(allowed)[1])
        steps = []
        for layer in layers:
            place = layer.widths.index(int(best[layer.name]))
            if place > 0:
                narrower = layer.widths[place - 1]
                saved = layer.saved_at(narrower) - layer.saved_at(layer.widths[place])
                steps.append((-saved, layer.name, best | {layer.name: str(narrower)}))
        for _, _, point in sorted(steps, key=lambda step: step[:2])[:_STEPS]:
            if self._loss(point) is None:
                return


@dataclass(frozen=True)
class _Layer:
    name: str
    widths: list[int]
    """In bits, narrowest first."""
    loss: float
    """Percentage points lost with this layer alone at its narrowest."""
    saved: float
    """Bits saved at its narrowest, compared with its widest."""

    def loss_at(self, width: int) -> float:
        return self.loss * _NOISE ** (width - self.widths[0]) if width < self.widths[-1] else 0.0

    def saved_at(self, width: int) -> float:
        return self.saved * (self.widths[-1] - width) / (self.widths[-1] - self.widths[0])


def shared_out(layers: list[_Layer], allowance: float) -> Point:
    """Return the widths with the fewest bits for which the layers' losses add up to at most the allowance."""
    cell = max(1e-9, allowance) / _CELLS
    best = [0.0] * (_CELLS + 1)
    """The most bits that can be saved with each number of cells."""
    choices: list[list[tuple[int, int]]] = []
    """For each layer and each number of cells: the layer's width, and the cells it takes."""
    for layer in layers:
        widths = [(w, layer.saved_at(w), math.ceil(layer.loss_at(w) / cell - 1e-9)) for w in layer.widths]
        chosen = [max((best[at - c] + s, w, c) for w, s, c in widths if c <= at) for at in range(_CELLS + 1)]
        best = [saved for saved, _, _ in chosen]
        choices.append([(w, c) for _, w, c in chosen])
    point, left = Point(), _CELLS
    for layer, by_cells in zip(reversed(layers), reversed(choices), strict=True):
        width, taken = by_cells[left]
        point[layer.name], left = str(width), left - taken
    return point
