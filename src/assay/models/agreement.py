"""What a model run in another way returned, against the same model in float64, and against what plain PyTorch loses
there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.models.rounding import Errors, errors, share

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Agreement:
    plain: Errors
    mine: Errors
    share: float
    """Of the limit (assay.models.rounding), in the output that comes closest to it; above 1 is a failure."""
    ratio: float | None
    """The worst of my errors over the worst of the plain ones; None where those are exact."""
    note: str = ""

    def to_dict(self, plain: str, mine: str) -> dict[str, Any]:
        """Under what the two are called."""
        return {
            plain: self.plain.to_dict(),
            mine: self.mine.to_dict(),
            "share": self.share,
            "ratio": self.ratio,
            "note": self.note,
        }


def wrong(told: Mapping[str, Any], plain: str, mine: str) -> str:
    """What `to_dict` told, in words; empty where it is right."""
    if told["share"] <= 1:
        return ""
    if told["note"]:
        return str(told["note"])
    if told[mine]["astray"] > told[plain]["astray"]:
        return f"{told[mine]['astray']:.0f} outputs are NaN or infinite where float64 is not, or the other way"
    return (
        f"the outputs are wrong: {told[mine]['rms']:.3g} units off float64 (rms), {plain} {told[plain]['rms']:.3g}; "
        f"{told['share']:.3g}× the limit"
    )


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


def agreement(exact: list[torch.Tensor], plain: list[torch.Tensor], mine: list[torch.Tensor]) -> Agreement:
    if [t.shape for t in plain] != [t.shape for t in mine]:
        raise AssayError(f"it returns {_shapes(mine)}, and in plain PyTorch {_shapes(plain)}")
    worst: Agreement | None = None
    for truth, theirs, ours in zip(exact, plain, mine, strict=True):
        if ours.dtype != theirs.dtype:
            raise AssayError(f"it returns {ours.dtype}, and in plain PyTorch {theirs.dtype}")
        if ours.is_floating_point():
            before, after = errors(theirs, truth), errors(ours, truth)
            ratio = after.worst / before.worst if before.worst else None
            found = Agreement(before, after, share(after, before), ratio)
        else:  # whole numbers are right or wrong, and plain PyTorch's count
            off = int((ours != theirs).sum())
            none = Errors(0.0, 0.0, 0.0)
            found = Agreement(none, none, 2.0 * (off > 0), None, f"{off} of {ours.numel()} whole numbers differ")
        worst = found if worst is None or found.share > worst.share else worst
    assert worst is not None
    return worst


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(str(tuple(t.shape)) for t in tensors)
