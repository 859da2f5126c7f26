"""Scores of a model: accuracy on labelled images or texts, or the fraction of sentences that find their partner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import SourceError
from assay.models.subject.data.labelled import Form, Labelled

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Score:
    what: str
    """Description: `accuracy on mnist's test split`."""
    correct: int
    total: int
    loss: float | None
    value: float
    """correct / total."""


@dataclass(frozen=True)
class Answers:
    """A model's answers for each item, in the order of the data."""

    predicted: torch.Tensor
    """int64: the class with the largest logit."""
    losses: torch.Tensor
    """float32: the cross entropy."""


def answers(model: torch.nn.Module, data: Labelled, batch: int = 0) -> Answers:
    """Return the answers for all of `data`, in eval mode; the model's mode is restored. `batch` 0: the data's usual."""
    import torch
    from torch.nn import functional

    device, dtype = placed(model)
    was_training = model.training
    model.eval()
    predicted = torch.zeros(len(data), dtype=torch.int64, device=device)
    losses = torch.zeros(len(data), dtype=torch.float32, device=device)
    try:
        with torch.no_grad():
            for which in data.batches(batch or data.scoring_batch):
                logits = model(*(part.to(device) for part in data.inputs(which, dtype)))
                labels = data.labels[which].to(device)
                verify_logits(logits, len(labels), data)
                predicted[which] = logits.argmax(1)
                losses[which] = functional.cross_entropy(logits.float(), labels, reduction="none")
    finally:
        model.train(was_training)
    return Answers(predicted, losses)


def accuracy(model: torch.nn.Module, data: Labelled, batch: int = 0, what: str = "test") -> Score:
    """Return the fraction of `data` that the model classifies correctly."""
    said = answers(model, data, batch)
    right, count = int((said.predicted == data.labels.to(said.predicted.device)).sum()), len(data)
    loss = float(said.losses.double().sum()) / count
    return Score(f"accuracy on {data.name}'s {what} split", right, count, loss, right / count)


def partner_accuracy(model: torch.nn.Module, folder: Path) -> Score:
    """Return the fraction of sentences whose nearest other sentence is their partner."""
    import torch

    from assay.models.subject.zoo.minilm import tokenise
    from assay.models.subject.zoo.sentences import PAIRS

    device, _ = placed(model)
    ids, mask = tokenise(folder, [s for pair in PAIRS for s in pair])
    with torch.no_grad():
        vectors = model(ids.to(device), mask.to(device)).double()
    near = (vectors @ vectors.T).fill_diagonal_(-2)
    partner = torch.arange(len(ids), device=device) ^ 1
    correct = int((near.argmax(1) == partner).sum())
    return Score("sentences that find their partner", correct, len(ids), None, correct / len(ids))


def placed(model: torch.nn.Module) -> tuple[str, torch.dtype]:
    """Return the device and dtype of the model's floating-point weights; CPU and fp32 if it has none."""
    import torch

    for weight in (*model.parameters(), *model.buffers()):
        if weight.is_floating_point():
            return str(weight.device), weight.dtype
    return "cpu", torch.float32


def verify_logits(logits: Any, rows: int, data: Form) -> None:
    shape = tuple(getattr(logits, "shape", ()))
    if shape != (rows, data.classes):
        raise SourceError(
            f"the model gives {shape or type(logits).__name__} for {rows} {data.item}s, not ({rows}, {data.classes})",
            fix=f"it must give one row of {data.classes} logits for each {data.form}",
        )
