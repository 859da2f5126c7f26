"""Which items of a split a model classifies right, one by one: so two models can be compared on the same items."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn

    from assay.models.subject.data.labelled import Labelled


def right(model: nn.Module, data: Labelled) -> torch.Tensor:
    """One bool for each item, on the CPU."""
    from assay.models.subject.score import answers

    said = answers(model, data).predicted
    return (said == data.labels.to(said.device)).cpu()


def packed(bools: torch.Tensor) -> str:
    """As text: one bit each, the first in the highest bit, base64."""
    import numpy as np

    return base64.b64encode(np.packbits(bools.numpy()).tobytes()).decode()


def unpacked(text: str, count: int) -> torch.Tensor:
    import numpy as np
    import torch

    return torch.from_numpy(np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool))
