"""Latency: how long one forward pass of one element takes, with the device to itself."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from assay.search import device_lock

if TYPE_CHECKING:
    from torch import nn

_WARM, _TIMED = 5, 30
"""Calls before the timed ones, and timed ones; the median counts."""


def latency(model: nn.Module, inputs: tuple[Any, ...], device: str) -> float:
    """Seconds of `model(*inputs)`."""
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
