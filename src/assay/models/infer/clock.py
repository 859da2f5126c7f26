"""The clock of latency: what somebody waits who needs each result before the next call."""

from __future__ import annotations

import time

from assay.models.turns import WaitedClock
from assay.worker.stopwatch import Call, Sample


class EachWaited(WaitedClock):
    """On a GPU. (WaitedClock waits once for a whole batch of calls: the host is ahead of the device there, which is the
    clock of throughput.)"""

    method = "host clock, the device waited for after every call"

    def sample(self, call: Call, first: int, count: int) -> Sample:
        self.finish()
        began = time.perf_counter_ns()
        for i in range(first, first + count):
            call(i)
            self.finish()
        return Sample((time.perf_counter_ns() - began) * 1e-9 / count)
