"""How good a model is: accuracy on labelled images, or how many sentences find their partner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import SourceError
from assay.models.subject.data.digits import CLASSES, Digits

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Score:
    what: str
    """`accuracy on mnist's test split`."""
    correct: int
    total: int
    loss: float | None
    value: float
    """correct / total."""


def accuracy(model: torch.nn.Module, data: Digits, batch: int = 500, what: str = "test") -> Score:
    """Over all of `data`, in eval mode; the model's mode is put back."""
    import torch
    from torch.nn import functional

    device, dtype = placed(model)
    was_training = model.training
    model.eval()
    correct = torch.zeros((), dtype=torch.int64, device=device)
    loss = torch.zeros((), dtype=torch.float64, device=device)
    try:
        with torch.no_grad():
            for begin in range(0, len(data), batch):
                which = slice(begin, begin + batch)
                logits = model(data.inputs(which, dtype).to(device))
                labels = data.labels[which].to(device)
                verify_logits(logits, len(labels))
                correct += (logits.argmax(1) == labels).sum()
                loss += functional.cross_entropy(logits.float(), labels, reduction="sum")
    finally:
        model.train(was_training)
    name, right, count = f"accuracy on {data.name}'s {what} split", int(correct), len(data)
    return Score(name, right, count, float(loss) / count, right / count)


def partner_accuracy(model: torch.nn.Module, folder: Path) -> Score:
    """The share of sentences whose nearest other sentence is their partner."""
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
    """Where its floating-point weights are, and in which format; a model without any is of the CPU, in fp32."""
    import torch

    for weight in (*model.parameters(), *model.buffers()):
        if weight.is_floating_point():
            return str(weight.device), weight.dtype
    return "cpu", torch.float32


def verify_logits(logits: Any, rows: int) -> None:
    shape = tuple(getattr(logits, "shape", ()))
    if shape != (rows, CLASSES):
        raise SourceError(
            f"the model gives {shape or type(logits).__name__} for {rows} images, not ({rows}, {CLASSES})",
            fix=f"it must give one row of {CLASSES} logits for each image of 1 × 28 × 28",
        )
