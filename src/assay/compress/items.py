"""Which items of a split a model classifies correctly, so that two models can be compared on the same items."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn

    from assay.models.subject.data.labelled import Labelled


def right(model: nn.Module, data: Labelled) -> torch.Tensor:
    """Return one bool for each item, on the CPU: whether it is classified correctly."""
    from assay.models.subject.score import answers

    said = answers(model, data).predicted
    return (said == data.labels.to(said.device)).cpu()


def packed(bools: torch.Tensor) -> str:
    """Return the bools as base64 text, one bit each, the first in the highest bit."""
    import numpy as np

    return base64.b64encode(np.packbits(bools.numpy()).tobytes()).decode()


def unpacked(text: str, count: int) -> torch.Tensor:
    import numpy as np
    import torch

    return torch.from_numpy(np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool))
