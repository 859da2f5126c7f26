"""Which elements of a split a model classifies right, one by one: two models can then be compared on the same ones."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from assay.models.subject.data.digits import Digits

_BATCH = 500


@dataclass(frozen=True)
class Judged:
    right: np.ndarray
    """One bool for each element."""

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    @property
    def packed(self) -> str:
        import numpy as np

        return base64.b64encode(np.packbits(self.right).tobytes()).decode()


def unpacked(text: str, count: int) -> np.ndarray:
    import numpy as np

    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool)


def judged(model: nn.Module, data: Digits) -> Judged:
    """In eval mode, on the model's device; its mode is put back."""
    import numpy as np
    import torch

    from assay.models.subject.score import placed, verify_logits

    device, dtype = placed(model)
    training, right = model.training, []
    model.eval()
    try:
        with torch.no_grad():
            for begin in range(0, len(data), _BATCH):
                which = slice(begin, begin + _BATCH)
                labels = data.labels[which].to(device)
                logits = model(data.inputs(which, dtype).to(device))
                verify_logits(logits, len(labels))
                right.append((logits.argmax(1) == labels).cpu().numpy())
    finally:
        model.train(training)
    return Judged(np.concatenate(right))
