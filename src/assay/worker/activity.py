"""Inside a worker: the second clock, CUPTI's record of what ran on the device, read through PyTorch's profiler."""

from __future__ import annotations

import os
from typing import Any

from assay.worker import channel
from assay.worker.questions import Done, Watch
from assay.worker.stopwatch import Call


def watch(request: Watch, arena: channel.Arena) -> Done:
    """Start CUPTI and leave it on, because starting takes seconds. A process that is watched is never timed."""
    import torch

    os.environ |= {"TEARDOWN_CUPTI": "0", "DISABLE_CUPTI_LAZY_REINIT": "1"}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    return Done()


def record(call: Call, count: int, stream: Any) -> dict[str, Any]:
    """Return the seconds of kernels and copies on the device and their number, both per call, their names, and how many
    streams they ran on."""
    import torch
    from torch.autograd import DeviceType

    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for i in range(count):
            call(i)
        torch.cuda.synchronize()
    events = [e for e in profile.profiler.kineto_results.events() if e.device_type() == DeviceType.CUDA]
    events = [e for e in events if e.duration_ns() > 0 and not e.name().startswith("ProfilerStep")]
    names: dict[str, int] = {}
    for e in events:
        names[e.name()[:200]] = names.get(e.name()[:200], 0) + 1
    streams = {e.device_resource_id() for e in events}
    return {
        "seconds": sum(e.duration_ns() for e in events) * 1e-9 / count,
        "launches": len(events) / count,
        "names": dict(sorted(names.items(), key=lambda item: -item[1])[:8]),
        "streams": len(streams),
    }
