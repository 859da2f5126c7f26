"""Where a wrong variant goes wrong: the first module whose output is off, counted as they finish."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from assay.models.studies.agreement import errors, share
from assay.models.studies.infer.modules import watched
from assay.models.subject.registry import Entry, Inputs
from assay.models.subject.subject import widened

Outputs = dict[tuple[str, int, tuple[int, ...]], torch.Tensor]
"""By path, how often the module had run before, and the output's shape: some of its rows."""
_MOST = 1 << 18
"""Elements kept of one output: all outputs of all modules, three times over, are more than a GPU holds."""


def suspect(entry: Entry, plain: nn.Module, swapped: nn.Module, inputs: Sequence[Inputs]) -> str:
    """The path of that module; empty where every one is right by itself. Inner modules finish first, so it is the
    innermost."""
    wide = copy.deepcopy(plain).double()
    exact = _outputs(entry, wide, [widened(i) for i in inputs])
    theirs, mine = _outputs(entry, plain, inputs), _outputs(entry, swapped, inputs)
    for place, got in mine.items():
        truth, plain_got = exact.get(place), theirs.get(place)
        if truth is None or plain_got is None:
            continue
        if share(errors(got, truth), errors(plain_got, truth)) > 1:
            return place[0] or "(the model)"
    return ""


def _outputs(entry: Entry, model: nn.Module, inputs: Sequence[Inputs]) -> Outputs:
    """Of every module whose output is one floating tensor, in the order they finish, all inputs together."""
    found: dict[tuple[str, int, tuple[int, ...]], list[torch.Tensor]] = {}
    for one in inputs:
        before: Counter[str] = Counter()

        def leave(path: str, output: Any, before: Counter[str] = before) -> None:
            if isinstance(output, torch.Tensor) and output.is_floating_point() and output.dim():
                place = path, before[path], tuple(output.shape)
                found.setdefault(place, []).append(_some(output.detach()))
                before[path] += 1

        with watched(model, lambda path: None, leave):
            entry.forward(model, one)
    return {place: torch.cat(outputs) for place, outputs in found.items()}


def _some(output: torch.Tensor) -> torch.Tensor:
    """Rows evenly spaced, by an odd step: an even one might see the same few places only."""
    step = math.ceil(output.numel() / _MOST) | 1
    return output.reshape(-1, output.shape[-1])[::step].clone()
