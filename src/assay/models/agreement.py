"""What a compiled model returned, against the same model in float64, and against what eager loses there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.models.rounding import Errors, errors, share

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Agreement:
    eager: Errors
    compiled: Errors
    share: float
    """Of the limit (assay.models.rounding), in the output that comes closest to it; above 1 is a failure."""
    ratio: float | None
    """Compiled's worst error over eager's; None where eager is exact."""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "eager": self.eager.to_dict(),
            "compiled": self.compiled.to_dict(),
            "share": self.share,
            "ratio": self.ratio,
            "note": self.note,
        }


def leaves(returned: Any) -> list[torch.Tensor]:
    """The tensors in whatever a model returns, detached from what a later call will overwrite."""
    import torch
    from torch.utils import _pytree as pytree

    found = [leaf.detach().clone() for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
    if not found:
        raise AssayError(
            f"the model returned no tensor, but a {type(returned).__name__}",
            fix="return tensors, or a tuple, list or dict of them",
        )
    return found


def agreement(exact: list[torch.Tensor], eager: list[torch.Tensor], compiled: list[torch.Tensor]) -> Agreement:
    if [t.shape for t in eager] != [t.shape for t in compiled]:
        raise AssayError(f"compiled returns {_shapes(compiled)}, eager {_shapes(eager)}")
    worst: Agreement | None = None
    for truth, plain, mine in zip(exact, eager, compiled, strict=True):
        if mine.dtype != plain.dtype:
            raise AssayError(f"compiled returns {mine.dtype}, eager {plain.dtype}")
        if mine.is_floating_point():
            theirs, ours = errors(plain, truth), errors(mine, truth)
            found = Agreement(theirs, ours, share(ours, theirs), ours.worst / theirs.worst if theirs.worst else None)
        else:  # whole numbers are right or wrong, and eager's count
            off = int((mine != plain).sum())
            none = Errors(0.0, 0.0, 0.0)
            found = Agreement(none, none, 2.0 * (off > 0), None, f"{off} of {mine.numel()} whole numbers differ")
        worst = found if worst is None or found.share > worst.share else worst
    assert worst is not None
    return worst


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(str(tuple(t.shape)) for t in tensors)
