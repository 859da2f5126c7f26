"""How far a packed model's outputs are from the original's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Comparison:
    sqnr: float | None
    """Signal to quantisation noise ratio over all elements, in dB: 10·log₁₀(Σ exact² / Σ (got − exact)²). None: no
    noise."""
    cosine: float
    """Mean cosine similarity of corresponding rows (along the last axis)."""
    least_cosine: float
    """Smallest cosine similarity of a row."""
    worst: float
    """Largest |got − exact|."""
    relative: float
    """`worst` over the largest |exact|."""
    same_choice: float
    """Fraction of rows whose largest element is the same: for logits, unchanged predictions."""
    rows: int
    astray: int = 0
    """Elements that are finite in one and not in the other. They are left out of the other figures."""


def compare(exact: Any, got: Any) -> Comparison:
    """Compare the outputs of two forward passes: tensors, or containers of them. Integer tensors are left out."""
    before, after = _rows(exact), _rows(got)
    if not before or [t.shape for t in before] != [t.shape for t in after]:
        raise UsageError("outputs of different shapes cannot be compared", fix="give both models the same inputs")
    astray = sum(int((a.isfinite() != b.isfinite()).sum()) for a, b in zip(before, after, strict=True))
    pairs = [_finite(a, b) for a, b in zip(before, after, strict=True)]
    signal = math.fsum(float(a.square().sum()) for a, _ in pairs)
    noise = math.fsum(float((b - a).square().sum()) for a, b in pairs)
    largest = max(float(a.abs().max()) for a, _ in pairs)
    worst = max(float((b - a).abs().max()) for a, b in pairs)
    cosines = [c for a, b in pairs for c in _cosines(a, b).tolist()]
    chosen = [c for a, b in pairs for c in (a.argmax(-1) == b.argmax(-1)).tolist()]
    return Comparison(
        sqnr=10 * math.log10(signal / noise) if signal and noise else None,
        cosine=math.fsum(cosines) / len(cosines),
        least_cosine=min(cosines),
        worst=worst,
        relative=worst / largest if largest else math.inf if worst else 0.0,
        same_choice=sum(chosen) / len(chosen),
        rows=len(cosines),
        astray=astray,
    )


def _rows(outputs: Any) -> list[torch.Tensor]:
    import torch
    from torch.utils import _pytree as pytree

    leaves = [t for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor) and t.is_floating_point()]
    return [t.detach().double().cpu().reshape(-1, t.shape[-1] if t.dim() else 1) for t in leaves if t.numel()]


def _finite(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    both = a.isfinite() & b.isfinite()
    return a.where(both, 0.0), b.where(both, 0.0)


def _cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the cosine similarity of each pair of rows, 1 if they are equal (even if both are zero)."""
    import torch

    lengths = a.norm(dim=-1) * b.norm(dim=-1)
    same = (a == b).all(-1)
    return torch.where(same, 1.0, (a * b).sum(-1) / lengths.clamp(min=torch.finfo(a.dtype).tiny))
