"""Tensors and facts in one safetensors file: written whole or not at all, known by its hash to be as it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, UsageError
from assay.models import atomic

if TYPE_CHECKING:
    import torch

_KEY, _VERSION = "assay", 1
"""Of the metadata. One key alone: the format writes several in no particular order, and equal files should be equal."""

PACKED = "packed"
"""The fact that says which layers of the file are packed: only packed/checkpoint.py loads such a one."""


@dataclass(frozen=True)
class Checkpoint:
    tensors: Mapping[str, torch.Tensor]
    facts: Mapping[str, Any]
    """Whatever JSON can hold; floats come back bit for bit."""


def write(path: Path, kept: Checkpoint) -> str:
    """Returns the SHA-256 of what is in it."""
    from safetensors.torch import save

    # Weights that share their memory are stored once for each name: the format knows no sharing.
    tensors = {n: t.detach().cpu().contiguous().clone() for n, t in kept.tensors.items()}
    facts = json.dumps(dict(kept.facts), sort_keys=True)
    digest = _digest(tensors, facts)
    about = json.dumps({"version": _VERSION, "sha256": digest, "facts": facts})
    atomic.write(path, save(tensors, {_KEY: about}))
    return digest


def read(path: Path) -> Checkpoint:
    """What `write` wrote; an error that names the file for anything else."""
    kept = load(path)
    if kept.facts is None:
        raise UsageError(f"{path} was not written by assay", fix="name another file")
    return Checkpoint(kept.tensors, kept.facts)


@dataclass(frozen=True)
class Loaded:
    tensors: dict[str, torch.Tensor]
    facts: dict[str, Any] | None
    """None: a file of somebody else's."""


def load(path: Path) -> Loaded:
    """What any safetensors file holds; one of ours is held against its hash."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about = (file.metadata() or {}).get(_KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        if about is None:
            return Loaded(tensors, None)
        told = json.loads(about)
        intact = told["version"] == _VERSION and _digest(tensors, told["facts"]) == told["sha256"]
    except FileNotFoundError:
        raise UsageError(f"no file {path}", fix="name one that exists") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise _damaged(path, str(problem)) from None
    if not intact:
        raise _damaged(path, "its content does not have the SHA-256 it was written with")
    return Loaded(tensors, json.loads(told["facts"]))


def compare(path: Path, found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Size], fix: str) -> None:
    """Names and shapes, before the first tensor is copied; a UsageError that says what does not fit."""
    missing = [n for n in wanted if n not in found]
    beyond = [n for n in found if n not in wanted]
    shaped = [n for n in found if n in wanted and found[n].shape != wanted[n]]
    for names, what in ((missing, "lacks"), (beyond, "has, beyond the model,"), (shaped, "has other shapes for")):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise UsageError(f"{path} {what} {', '.join(names[:3])}{more}", fix=fix)


def _digest(tensors: Mapping[str, torch.Tensor], facts: str) -> str:
    import torch

    whole = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        whole.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            whole.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()


def _damaged(path: Path, why: str) -> AssayError:
    return UsageError(f"{path} is damaged: {why}", fix="remove it and begin again, or name an intact copy")
