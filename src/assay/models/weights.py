"""A model's weights in a file: ours, anybody's safetensors, or a PyTorch state dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.models import checkpoint

if TYPE_CHECKING:
    import torch

Rename = Callable[[Mapping[str, "torch.Tensor"]], "dict[str, torch.Tensor]"]


def load(model: torch.nn.Module, file: Path, rename: Rename | None = None) -> None:
    """All of them or none: names and shapes are compared before the first is copied."""
    import torch

    found = _tensors(file)
    if rename:
        found = rename(found)
    wanted = model.state_dict()
    # Old files lack the counters of BatchNorm, which only training without momentum reads.
    shapes = {n: t.shape for n, t in wanted.items() if n in found or not n.endswith("num_batches_tracked")}
    checkpoint.compare(file, found, shapes, fix="name the weights of this model")
    with torch.no_grad():
        for name, tensor in found.items():
            wanted[name].copy_(tensor)


def facts(file: Path) -> dict[str, Any]:
    """What training said of them; empty for files of others."""
    return checkpoint.load(file).facts or {}


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    if file.suffix not in (".pt", ".pth", ".bin"):
        kept = checkpoint.load(file)
        if checkpoint.PACKED in (kept.facts or {}):
            raise UsageError(f"{file} holds packed weights", fix="load it with assay.models.packed.checkpoint.load")
        return kept.tensors
    import torch

    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UsageError(f"no file {file}", fix="name one that exists") from None
    except Exception as problem:
        raise UsageError(f"{file} holds no state dict: {str(problem).splitlines()[0]}", fix="name another") from None
    if not isinstance(found, Mapping) or not all(isinstance(t, torch.Tensor) for t in found.values()):
        raise UsageError(f"{file} holds no state dict", fix="save it with torch.save(model.state_dict(), …)")
    return dict(found)
