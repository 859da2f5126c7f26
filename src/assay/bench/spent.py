"""Measures where the time of a benchmark goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

STAGES = {
    "start": "starting processes",
    "draw": "drawing inputs",
    "build": "building kernels",
    "time": "timing",
    "judge": "judging timed calls",
    "clocks": "the other two clocks",
}


class Spent:
    """Seconds by stage. The time of a nested stage is not counted in the outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self._inner = [0.0]

    @contextmanager
    def on(self, stage: str) -> Iterator[None]:
        self._inner.append(0.0)
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self.seconds[stage] += took - self._inner.pop()
            self._inner[-1] += took

    def __str__(self) -> str:
        parts = [f"{STAGES[stage]} {took:.1f} s" for stage, took in self.seconds.items() if took >= 0.05]
        return ", ".join(parts)
