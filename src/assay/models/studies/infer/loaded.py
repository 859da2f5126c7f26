"""Inside a process: the model with its weights, in one format on one device, and its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from assay.backends.torch import in_full_precision
from assay.dtype import dtype as format_called
from assay.models.studies.infer.case import Setup
from assay.models.subject.registry import entry
from assay.models.subject.subject import Subject


def load(told: Mapping[str, Any]) -> tuple[Subject, dict[str, Any]]:
    """The model, and where its weights are from."""
    asked = Setup(**told)
    if asked.threads:
        torch.set_num_threads(asked.threads)
    in_full_precision()
    found = entry(asked.model)
    model = found.build(asked.seed, **asked.options)
    weights: dict[str, Any] = {"from": asked.source}
    if asked.weights:
        file = Path(asked.weights)
        found.load(model, file)
        weights |= {"file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    model = model.to(asked.device, format_called(asked.dtype).torch).eval()
    return Subject(found, model, asked.dtype, asked.device, asked.seed), weights


def size(model: torch.nn.Module) -> int:
    """Bytes of its parameters and buffers, each once."""
    tensors = {t.data_ptr() or id(t): t for t in (*model.parameters(), *model.buffers())}
    return sum(t.nbytes for t in tensors.values())
