"""Weights in files. Assay's checkpoints hold tensors and facts in one safetensors file, which is written atomically and
verified by a hash. Other safetensors files and PyTorch's state dicts can be read, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, UsageError
from assay.models.subject import atomic

if TYPE_CHECKING:
    import torch

_KEY, _VERSION = "assay", 1
"""Key and version of the metadata. There is one key, since the format writes several in no particular order, and equal
checkpoints should give equal files."""

PACKED = "packed"
"""Key, among the facts, of the packed layers. Only packed/checkpoint.py loads a file that has it."""


Rename = Callable[[Mapping[str, "torch.Tensor"]], "dict[str, torch.Tensor]"]


@dataclass(frozen=True)
class Checkpoint:
    tensors: Mapping[str, torch.Tensor]
    facts: Mapping[str, Any]
    """Any JSON data; floats are restored bit for bit."""


def write(path: Path, kept: Checkpoint) -> str:
    """Write the checkpoint and return the SHA-256 of its content."""
    from safetensors.torch import save

    # Weights that share memory are stored once for each name, since the format has no sharing.
    tensors = {n: t.detach().cpu().contiguous().clone() for n, t in kept.tensors.items()}
    facts = json.dumps(dict(kept.facts), sort_keys=True)
    digest = _digest(tensors, facts)
    about = json.dumps({"version": _VERSION, "sha256": digest, "facts": facts})
    atomic.write(path, save(tensors, {_KEY: about}))
    return digest


def read(path: Path) -> Checkpoint:
    """Read a checkpoint written by `write`. Raise UsageError, naming the file, for anything else."""
    kept = load(path)
    if kept.facts is None:
        raise UsageError(f"{path} was not written by assay", fix="name another file")
    return Checkpoint(kept.tensors, kept.facts)


@dataclass(frozen=True)
class Loaded:
    tensors: dict[str, torch.Tensor]
    facts: dict[str, Any] | None
    """None: the file was not written by Assay."""


def load(path: Path) -> Loaded:
    """Load any safetensors file; one written by Assay is verified by its hash."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about = (file.metadata() or {}).get(_KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        if about is None:
            return Loaded(tensors, None)
        header = json.loads(about)
        intact = header["version"] == _VERSION and _digest(tensors, header["facts"]) == header["sha256"]
    except FileNotFoundError:
        raise UsageError(f"no file {path}", fix="name one that exists") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        if path.is_dir() or not _safetensors(path):
            fix = "name one; a state dict of torch.save is read if its name ends in .pt, .pth or .bin"
            raise UsageError(f"{path} is no safetensors file", fix=fix) from None
        raise _damaged(path, str(problem)) from None
    if not intact:
        raise _damaged(path, "its content does not have the SHA-256 it was written with")
    return Loaded(tensors, json.loads(header["facts"]))


def load_into(model: torch.nn.Module, path: Path, rename: Rename | None = None, head: tuple[str, ...] = ()) -> None:
    """Load all weights of a file or none: names and shapes are compared before the first is copied. Names that begin
    with one of `head` may be missing on either side: the model's weights stay as they are, the file's are ignored."""
    import torch

    tensors = _tensors(path)
    if rename:
        tensors = rename(tensors)
    state = model.state_dict()
    # Old files lack BatchNorm's counters, which are read only in training without momentum.
    optional = tuple(n for n in state if n.endswith("num_batches_tracked") or n.startswith(head))
    tensors = {n: t for n, t in tensors.items() if n in state or not n.startswith(head)}
    shapes = {n: t.shape for n, t in state.items() if n in tensors or n not in optional}
    compare(path, tensors, shapes, fix="name the weights of this model")
    with torch.no_grad():
        for name, tensor in tensors.items():
            state[name].copy_(tensor)


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix not in (".pt", ".pth", ".bin"):
        kept = load(path)
        if PACKED in (kept.facts or {}):
            raise UsageError(f"{path} holds packed weights", fix="load it with assay.models.packed.checkpoint.load")
        return kept.tensors
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UsageError(f"no file {path}", fix="name one that exists") from None
    except Exception as problem:
        raise UsageError(f"{path} holds no state dict: {str(problem).splitlines()[0]}", fix="name another") from None
    if not isinstance(state, Mapping) or not all(isinstance(t, torch.Tensor) for t in state.values()):
        raise UsageError(f"{path} holds no state dict", fix="save it with torch.save(model.state_dict(), …)")
    return dict(state)


def compare(path: Path, tensors: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Size], fix: str) -> None:
    """Compare names and shapes before the first tensor is copied. Raise UsageError for what does not match."""
    missing = [n for n in wanted if n not in tensors]
    beyond = [n for n in tensors if n not in wanted]
    shaped = [n for n in tensors if n in wanted and tensors[n].shape != wanted[n]]
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


def _safetensors(path: Path) -> bool:
    """Return whether a file begins like a safetensors file: the length of its header, then the header's JSON."""
    with path.open("rb") as file:
        begin = file.read(9)
    return path.suffix == ".safetensors" or begin[8:] == b"{"


def _damaged(path: Path, why: str) -> AssayError:
    return UsageError(f"{path} is damaged: {why}", fix="remove it and begin again, or name an intact copy")
