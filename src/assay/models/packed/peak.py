"""The peak of a packed model's forward pass against the one that the bytes of its weights promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.models import measure
from assay.models.packed.account import Account, size
from assay.models.subject.score import placed

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Peak:
    """Of one forward pass, in bytes."""

    held: int
    """Before it: on a GPU all that is allocated, on a CPU the model's tensors."""
    work: int
    """Beyond that, at the most, by PyTorch's allocator."""

    @property
    def total(self) -> int:
        return self.held + self.work


def peak(model: nn.Module, call: Callable[[], Any]) -> Peak:
    """`call` runs the model, and has run before: what a first call leaves behind is not its own."""
    import torch

    device = placed(model)[0].partition(":")[0]
    tensors = {t.untyped_storage()._cdata: t for t in (*model.parameters(), *model.buffers())}
    if device == "cuda":
        torch.cuda.synchronize()
    held = torch.cuda.memory_allocated() if device == "cuda" else sum(map(size, tensors.values()))
    return Peak(held, measure.peak(call, device))


def peak_saved(before: Peak, after: Peak, found: Account) -> dict[str, Any]:
    """The peak that the bytes of the weights promise, the one that was measured, and where the difference lies."""
    promised = before.total - (found.model.before - found.model.after)
    return {
        "before": {**vars(before), "total": before.total},
        "after": {**vars(after), "total": after.total},
        "promised": promised,
        "saved": 1 - after.total / before.total,
        "beyond_promise": {
            "work space of the forward pass": after.work - before.work,
            "memory held outside it: the allocator's rounding, what else was allocated": after.held
            - (before.held - (found.model.before - found.model.after)),
        },
    }
