"""The most memory one call holds beyond what was there before it, its output included, by PyTorch's allocators. What
libraries take for themselves is not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def peak(call: Callable[[], Any], device: str) -> int:
    """Bytes. The call must be warm: what stays from a first is not its own."""
    return _cuda(call) if device == "cuda" else _cpu(call)


def _cuda(call: Callable[[], Any]) -> int:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _cpu(call: Callable[[], Any]) -> int:
    """By the profiler's record of every allocation and release."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return int(most)
