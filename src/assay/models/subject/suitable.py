"""The data set on which a model is trained and judged, and whether a user's own model takes its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import AssayError, UsageError
from assay.models.subject.data.datasets import DATASETS, dataset
from assay.models.subject.data.labelled import DataSet
from assay.models.subject.entry import Entry
from assay.models.subject.registry import ENTRIES
from assay.models.subject.score import placed, verify_logits

if TYPE_CHECKING:
    from torch import nn

OWN_DATA = "mnist"
"""Default data set of a user's own model."""


def data_of(known: Entry, asked: str = "") -> DataSet:
    """Return the data set called `asked`, or else the model's own. Raise UsageError if the model has none, or takes
    another kind of items."""
    if known.module and known.data not in DATASETS:
        fix = f"name {', '.join(e for e in ENTRIES if ENTRIES[e].data in DATASETS)}, or your own"
        raise UsageError(f"there is no data set for {known.name}, to train and to judge it", fix=fix)
    data = dataset(asked or known.data or OWN_DATA)
    if known.module and data.item != (item := DATASETS[known.data].item):
        fix = " or ".join(f"--data {d.name}" for d in DATASETS.values() if d.item == item)
        raise UsageError(f"{known.name} takes {item}s and {data.name} has {data.item}s", fix=fix)
    return data


def verify_takes(known: Entry, model: nn.Module, data: DataSet) -> None:
    """Raise UsageError if a user's own model does not take the data's items or does not return its classes. Blank items
    are enough to find out, so nothing is fetched."""
    if known.module or not (why := _refusal(known, model, data)):
        return
    takes = [other.name for other in DATASETS.values() if other.item != data.item and not _refusal(known, model, other)]
    if takes:
        fix = " or ".join(f"--data {name}" for name in takes)
        raise UsageError(f"{known.name} does not take {data.name}'s {data.item}s: {why}", fix=fix)
    forms: dict[str, list[str]] = {}
    for one in DATASETS.values():
        forms.setdefault(f"{one.classes} logits for each {one.form}", []).append(one.name)
    known_forms = "; ".join(f"{' or '.join(names)}, {form}" for form, names in forms.items())
    raise UsageError(
        f"no data set that Assay knows fits {known.name}; with {data.name}: {why}",
        fix=f"name a function that builds the model for one of them, and the data set with --data ({known_forms})",
    )


def _refusal(known: Entry, model: nn.Module, data: DataSet) -> str:
    """Return why the model does not take the data; empty if it does."""
    import torch

    training, (device, _) = model.training, placed(model)
    try:
        with known.guarded(f"running it on blank {data.item}s"), torch.no_grad():
            logits = model.eval()(*(part.to(device) for part in data.blank(2)))
        verify_logits(logits, 2, data)
    except AssayError as problem:
        return f"{problem.where}: {problem.what}" if problem.where else problem.what
    finally:
        model.train(training)
    return ""
