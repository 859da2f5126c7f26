"""What a variant returned, against the model in float64, and against what plain PyTorch loses there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.models.packed.compare import compare
from assay.models.studies.agreement import agreement

if TYPE_CHECKING:
    import torch

ENOUGH, BY_CHANCE = 16, 4.0
"""Elements of batches from which on two right ways do not differ by the limit; and of fewer, how many times the limit
they do not differ by."""


def judged(exact: list[torch.Tensor], plain: list[torch.Tensor], mine: list[torch.Tensor]) -> dict[str, Any]:
    """`share` is of the limit (`agreement`): above 1 it is wrong. `compared` is for variants that change
    weights by design, which no limit of rounding fits."""
    found = agreement(exact, plain, mine)
    floating = [(e, m) for e, m in zip(exact, mine, strict=True) if m.is_floating_point()]
    compared = compare(*zip(*floating, strict=True)).to_dict() if floating else None
    return found.to_dict("torch", "variant") | {"compared": compared}
