"""The layers of a model that can be compressed: those whose weight is a matrix or a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from torch import nn


def layers(model: nn.Module) -> dict[str, nn.Module]:
    """Linear and convolutional layers by path. A layer that stands in two places is listed with the first."""
    from torch import nn

    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    found: dict[str, nn.Module] = {path: module for path, module in model.named_modules() if isinstance(module, kinds)}
    if not found:
        raise UsageError(
            f"{type(model).__name__} has no layer that can be compressed",
            fix="name a model with linear or convolutional layers: their weights are what is quantised and pruned",
        )
    return found
