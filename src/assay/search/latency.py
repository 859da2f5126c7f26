"""Latency of a forward pass of one element, with exclusive use of the device."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from assay.search import device_lock

if TYPE_CHECKING:
    from torch import nn

_WARM, _TIMED = 5, 30
"""Warm-up calls and timed calls; the median of the timed ones is reported."""


def latency(model: nn.Module, inputs: tuple[Any, ...], device: str) -> float:
    """Return the median seconds of `model(*inputs)`."""
    import torch

    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    seconds = []
    with device_lock.alone(device), torch.no_grad():
        for call in range(_WARM + _TIMED):
            wait()
            began = time.perf_counter()
            model(*inputs)
            wait()
            if call >= _WARM:
                seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
