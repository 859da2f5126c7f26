"""Inside a worker: measures the SM clock during a batch from the device's own counters: cycles over nanoseconds, read
on the same multiprocessors before and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.errors import AssayError

_FEW = 4
"""The least number of multiprocessors that must have been read both times."""


class SmClock:
    def __init__(self, kernel: Any, multiprocessors: int) -> None:
        import torch

        self._kernel, self._count = kernel, multiprocessors
        self._seen = torch.zeros((2, 1024, 2), dtype=torch.int64, device="cuda")

    @classmethod
    def here(cls) -> SmClock | None:
        """Return a clock; None if nothing compiles CUDA C++."""
        import torch

        try:
            from assay.backends.cuda import Source

            kernel = Source(Path(__file__).with_name("sm_clock.cu"))["read_clock"]
            clock = cls(kernel, torch.cuda.get_device_properties(0).multi_processor_count)
            clock.read(0)
            torch.cuda.synchronize()
        except (ImportError, AssayError):
            return None
        return clock

    def read(self, which: int) -> None:
        """Read the counters on the current stream; `which` is 0 before and 1 after."""
        self._kernel(self._count, 1, self._seen[which])

    def hertz(self) -> float | None:
        """Return the median over all multiprocessors that were read both times; None if they are too few. Call it when
        the stream is done."""
        before, after = self._seen.cpu()
        there = (before[:, 0] > 0) & (after[:, 0] > before[:, 0]) & (after[:, 1] > before[:, 1])
        if int(there.sum()) < _FEW:
            return None
        cycles, nanoseconds = (after[there] - before[there]).double().unbind(1)
        return float((cycles / nanoseconds).median()) * 1e9
