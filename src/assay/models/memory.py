"""The most memory one call holds beyond what was there before it, its output included.

CUDA: the peak of PyTorch's allocator. CPU: the rise of the process's high-water mark (VmHWM), which Linux lets a
process reset; in a process where malloc gives every larger block back at once, so that none is hidden in its pools.
Linux counts pages in batches, so a small rise may be missed: PyTorch's CPU allocator, which knows nothing of what
libraries take for themselves, is asked too. Neither can say too much, so the larger is the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Of the process that memory is measured in. It is not the one times come from: there this would cost page faults."""
_REPEATS = 3
HOW = {
    "cuda": "peak of PyTorch's CUDA allocator above what was allocated before the call",
    "cpu": "the larger of the rise of the process's high-water mark (VmHWM) and the peak of PyTorch's CPU allocator",
}


def peak(call: Callable[[], Any], device: str) -> dict[str, int | None]:
    """`peak_bytes`, and on a CPU what it comes from. The call must be warm: what stays from a first is not its own."""
    if device == "cuda":
        return {"peak_bytes": _cuda(call)}
    resident = [_resident(call) for _ in range(_REPEATS)]
    risen = max((r for r in resident if r is not None), default=None)
    allocated = _allocated(call)
    return {"peak_bytes": max(allocated, risen or 0), "resident_bytes": risen, "allocated_bytes": allocated}


def _cuda(call: Callable[[], Any]) -> int:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _resident(call: Callable[[], Any]) -> int | None:
    """None where the mark cannot be reset."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _kib("VmRSS")
    call()
    return max(0, _kib("VmHWM") - before) << 10


def _allocated(call: Callable[[], Any]) -> int:
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


def _kib(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0
