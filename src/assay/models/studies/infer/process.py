"""The parent's side of one variant's process: started in the mode its kernels need, asked, started again without
graphs where a capture failed."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from assay.errors import AssayError
from assay.models.studies.infer.case import OWN
from assay.models.studies.infer.planning import CHILD, Plan
from assay.models.studies.infer.variants import Variant
from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused, Tick, last_words
from assay.worker.process import MODES

_ENVIRONMENT = {
    "TEARDOWN_CUPTI": "0",
    "DISABLE_CUPTI_LAZY_REINIT": "1",  # starting CUPTI takes seconds: once on, it stays
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a pool of its own would take longer to start than to serve
}
INTERPRETED = (1,)
"""The batch at which an interpreter or simulator is asked: its results say something, its times do not."""


class Broken(AssayError):
    """The variant failed: an exception in its process, or its end."""


class Process:
    def __init__(self, planned: Plan, variant: Variant, tick: Tick) -> None:
        self.planned, self.variant, self._tick = planned, variant, tick
        self.batches = INTERPRETED if variant.interpreted else planned.batches
        self.arms = tuple(a for a in planned.arms if not variant.interpreted or a == "eager") or ("eager",)
        self.refused: dict[str, str] = {}
        """Arm → why it is not done."""
        if "graphed" in self.arms and planned.subject.device == "cpu":
            self.refuse("graphed", "CUDA graphs are of a GPU")
        self.about: dict[str, Any] | None = None
        """What it answered to `prepare`."""
        self.failure: Broken | None = None
        self._fresh: Fresh | None = None
        self._over = False

    def refuse(self, arm: str, why: str) -> None:
        self.arms = tuple(a for a in self.arms if a != arm)
        self.refused[arm] = why

    def prepare(self) -> None:
        """Build, swap, compile: all that comes before the first measurement. A failure waits to be told."""
        try:
            self.about = self._prepare()
            if why := self.about.get("failures", {}).get("graphed"):
                ((whose, what),) = why.items()
                self.refuse("graphed", what if whose == "variant" else f"torch itself: {what}")
                self._stop()
                self.about = self._prepare()
        except Broken as failure:
            self.failure = failure

    def _prepare(self) -> dict[str, Any]:
        planned = self.planned
        if self._over:
            raise Broken("it was ended before it began")
        self._fresh = Fresh(CHILD, _ENVIRONMENT | MODES[self.variant.mode])
        return self.ask(
            "prepare",
            subject=planned.subject.to_dict(),
            rules=dict(self.variant.rules),
            arms=list(self.arms),
            batches=list(self.batches),
            budget=planned.budget,
            effort=planned.options.effort.to_dict(),
            backend=planned.options.backend,
        )

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        if self._fresh is None:
            raise Broken("its process was lost before this was asked")
        model, name = self.planned.subject.model, self.variant.name
        try:
            return self._fresh.ask(
                {"do": do, **more}, self.planned.options.timeout, lambda text: self._tick(f"{model} {name}: {text}")
            )
        except Refused as problem:
            if name == OWN and do == "prepare" and (mistake := problem.wrong_use):  # the user's own rules
                raise mistake from None
            raise Broken(problem.what, where=problem.where) from None
        except WorkerLost as lost:
            self._stop()
            raise Broken(last_words(lost)) from None

    def end(self) -> None:
        """When all is done: what the swap took to a file is given back, and the process ended."""
        if self._fresh is not None and self.about is not None and "cannot" not in self.about:
            with contextlib.suppress(Broken):
                self.ask("undo")
        self.close()

    def close(self) -> None:
        self._over = True
        self._stop()

    def _stop(self) -> None:
        if self._fresh is not None:
            self._fresh.__exit__()
            self._fresh = None


def prepare_all(processes: list[Process]) -> None:
    """Side by side, before anything is timed: starting and compiling keep a CPU busy, and wait for nobody's GPU."""
    with ThreadPoolExecutor(max(1, min(len(processes), (os.cpu_count() or 2) // 2))) as pool:
        waiting = [pool.submit(p.prepare) for p in processes]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            for one in waiting:
                one.cancel()
            for process in processes:
                process.close()
            raise
