"""Which weights and activations are dropped.

L1 drops the smallest absolute values, random any. Of weights exactly the requested fraction is dropped, ties broken by
position; `local` applies it to each layer separately, `global` to all layers together. Activations are dropped at a
layer's input, in each element of the batch separately: L1 keeps values above that quantile of |x|."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

METHODS = ("l1", "random")
SCOPES = ("local", "global")


def verify(sparsity: float) -> None:
    if not 0 <= sparsity < 100:
        raise UsageError(
            f"a sparsity of {sparsity:g} %", fix="write a percentage from 0 to below 100: --sparsity 50,90"
        )


def masks(weights: Mapping[str, Tensor], sparsity: float, method: str, scope: str, seed: int) -> dict[str, Tensor]:
    """Return a mask for each layer, True where a weight is kept. `sparsity` in per cent."""
    import torch

    verify(sparsity)
    rng = torch.Generator().manual_seed(seed)
    ranks = {
        name: torch.rand(w.numel(), generator=rng) if method == "random" else w.detach().abs().float().cpu().flatten()
        for name, w in weights.items()
    }
    if scope == "global":
        flat = _kept(torch.cat(list(ranks.values())), sparsity)
        parts = dict(zip(ranks, flat.split([len(r) for r in ranks.values()]), strict=True))
    else:
        parts = {name: _kept(rank, sparsity) for name, rank in ranks.items()}
    return {name: parts[name].view(w.shape).to(w.device) for name, w in weights.items()}


def _kept(ranks: Tensor, sparsity: float) -> Tensor:
    import torch

    dropped = round(len(ranks) * sparsity / 100)
    kept = torch.ones(len(ranks), dtype=torch.bool)
    kept[ranks.sort(stable=True).indices[:dropped]] = False
    return kept


def dropped(x: Tensor, sparsity: float, method: str, rng: torch.Generator) -> Tensor:
    """Return activations with `sparsity` per cent of them set to zero, in each element of the batch."""
    import torch

    if method == "random":
        return x * (torch.rand(x.shape, generator=rng, device=x.device) >= sparsity / 100)
    rows = x.flatten(1)
    count = round(rows.shape[1] * sparsity / 100)
    if not count:
        return x
    smallest = rows.detach().abs().kthvalue(count, dim=1, keepdim=True).values
    return (rows * (rows.abs() > smallest)).view_as(x)
