"""The clock of somebody who waits for a model on a GPU: launches count, which the other clocks of a GPU leave out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

from assay.worker.stopwatch import Call, Sample


@dataclass(frozen=True)
class WaitedClock:
    """The host's, from the first launch until the device has done the last of a batch."""

    each: bool = False
    """The device is waited for after every call: latency, for who needs each result before the next call. Otherwise the
    host runs ahead of the device: throughput."""
    shortest_batch: ClassVar[float] = 2e-3

    @property
    def method(self) -> str:
        return "host clock, the device waited for" + (" after every call" if self.each else "")

    def sample(self, call: Call, first: int, count: int) -> Sample:
        each = self.each
        self.finish()
        began = time.perf_counter_ns()
        for i in range(first, first + count):
            call(i)
            if each:
                self.finish()
        if not each:
            self.finish()
        return Sample((time.perf_counter_ns() - began) * 1e-9 / count)

    def finish(self) -> None:
        import torch

        torch.cuda.synchronize()
