"""The layers of a model that can be compressed: linear and convolutional ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from torch import nn


def layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return linear and convolutional layers by path. A layer used in two places is listed under the first path."""
    from torch import nn

    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    found: dict[str, nn.Module] = {path: module for path, module in model.named_modules() if isinstance(module, kinds)}
    if not found:
        raise UsageError(
            f"{type(model).__name__} has no layer that can be compressed",
            fix="name a model with linear or convolutional layers: their weights are what is quantised and pruned",
        )
    return found
