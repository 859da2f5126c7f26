"""Inside a worker: the functions that time a kernel and read its outputs, bound before the kernel's file is imported. A
kernel that replaces a name of `time`, `os` or `torch` afterwards changes nothing here; `seal` reports that it tried."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

now = time.perf_counter_ns
busy = time.process_time_ns
pause = time.sleep
_random = os.urandom

Event: Any = torch.cuda.Event
record, query, elapsed = Event.record, Event.query, Event.elapsed_time
Graph: Any = torch.cuda.CUDAGraph
capture_begin, capture_end, replay = Graph.capture_begin, Graph.capture_end, Graph.replay
# The builtins under torch.cuda's functions of these names; a build without CUDA has none.
synchronize: Any = getattr(torch._C, "_cuda_synchronize", torch.cuda.synchronize)
spin: Any = getattr(torch._C, "_cuda_sleep", None)
current_stream = torch.cuda.current_stream
reset_peak, peak_bytes = torch.cuda.reset_peak_memory_stats, torch.cuda.max_memory_allocated
held_bytes = torch.cuda.memory_allocated

# Tensor's own methods, of a type that Python code cannot change (torch.Tensor itself can be).
_base: Any = torch._C.TensorBase
as_strided, view, flatten, to = _base.as_strided, _base.view, _base.flatten, _base.to
copy_, fill_, clone, scatter_, index_select = _base.copy_, _base.fill_, _base.clone, _base.scatter_, _base.index_select
equal, empty, eq, all_ = torch.equal, torch.empty, _base.eq, _base.all
untyped_storage: Any = torch.Tensor.untyped_storage
Tensor, Parameter = torch.Tensor, torch.nn.Parameter


def below(limit: int) -> int:
    """Return a number in 0 … limit-1 from the system's random source, which nothing in this process can predict."""
    return int.from_bytes(_random(8), "little") % max(1, limit)
