"""Compiles configurations on all cores, without a GPU, and reads what is known of their code."""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from assay.artifact import Artifact
from assay.backends.base import Launch
from assay.errors import AssayError, UsageError
from assay.inspect.build import launches
from assay.inspect.evidence import Summary
from assay.inspect.occupancy import WARP, occupancy
from assay.inspect.summary import summary
from assay.inspect.table import table
from assay.isa.chips import chip
from assay.isa.cubin import functions
from assay.kernel import Kernel
from assay.machine.model import Model
from assay.target import Target
from assay.tune.estimate import Work, seconds
from assay.tune.evidence import Static
from assay.tune.space import Configuration, Key, key
from assay.worker import Pool
from assay.workload import Workload


@dataclass(frozen=True)
class Compiled:
    """What became of one configuration."""

    configuration: Configuration
    static: Static | None = None
    problem: str = ""
    """Why it was not built."""
    excess: str = ""
    """The resource that it needs more of than the target has; it cannot be launched there."""


@dataclass
class Compiler:
    """Compiles the configurations of one kernel on one workload. Code that several of them share is read once."""

    kernel: Kernel
    workload: Workload
    target: Target
    pool: Pool
    model: Model | None
    _summaries: dict[str, Summary] = field(default_factory=dict)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def compiled(
        self, configurations: Sequence[Configuration], tick: Callable[[Configuration], None] = lambda _: None
    ) -> Iterator[Compiled]:
        """Yield what became of each configuration, as it is ready. All cores compile at the same time."""
        width = max(1, min(len(configurations), os.cpu_count() or 1))
        with ThreadPoolExecutor(width) as executor:
            waiting = {executor.submit(self._one, c): c for c in configurations}
            try:
                for done in as_completed(waiting):
                    tick(waiting[done])
                    yield done.result()
            finally:
                for one in waiting:
                    one.cancel()

    def _one(self, configuration: Configuration) -> Compiled:
        try:
            started = launches(self.kernel, self.workload, self.target, self.pool, configuration)
        except UsageError:
            raise
        except AssayError as problem:
            return Compiled(configuration, problem=problem.what.strip())
        if not started:
            return Compiled(configuration, problem="it launches nothing on this workload")
        return Compiled(configuration, self._static(started), excess=self._excess(started))

    def _static(self, started: Sequence[Launch]) -> Static:
        about = [(launch, self._summary(launch.artifact)) for launch in started]
        known = chip(self.target)
        held = [
            occupancy(known, math.prod(launch.block), s.registers, s.shared.static + launch.shared)
            for launch, s in about
            if known and s.registers is not None
        ]
        works = [Work.of(launch, s) for launch, s in about]
        times = seconds(works, self.workload, known, self.model)
        longest = max(works, key=lambda w: w.blocks * w.warps)
        return Static(
            registers=_largest(s.registers for _, s in about),
            shared=max(s.shared.static + launch.shared for launch, s in about),
            spills=max(s.spills.most for _, s in about),
            occupancy=min((o.share for o in held if o.share is not None), default=None),
            warps=min((o.warps for o in held), default=None),
            instructions=sum(s.instructions for _, s in about),
            cycles=longest.cycles * longest.passes(self.workload),
            threads=max(math.prod(launch.block) for launch, _ in about),
            blocks=max(math.prod(launch.grid) for launch, _ in about),
            estimate=times,
            model=self.model.name if self.model else "",
            code=_code(started),
        )

    def _excess(self, started: Sequence[Launch]) -> str:
        """Return why a launch would be refused by the device; empty where it would not."""
        known = chip(self.target)
        if known is None:
            return ""
        for launch in started:
            s, threads = self._summary(launch.artifact), math.prod(launch.block)
            shared = s.shared.static + launch.shared
            if threads > 1024:
                return f"{threads} threads in a block, at most 1024 are allowed"
            if shared > known.shared_per_block:
                return f"{shared} bytes of shared memory in a block, {self.target} has {known.shared_per_block}"
            if s.registers is not None and not occupancy(known, threads, s.registers, shared).blocks:
                return (
                    f"{s.registers} registers for each of {threads} threads, {self.target} has {known.registers} in all"
                )
        return ""

    def _summary(self, artifact: Artifact) -> Summary:
        """Return what inspect derives from the code; of code that another thread is reading, its result."""
        with self._lock:
            lock = self._locks.setdefault(artifact.text_hash, threading.Lock())
        with lock:
            if artifact.text_hash not in self._summaries:
                rows = table(artifact.cubin, artifact.symbol)
                function = next(f for f in functions(artifact.cubin) if f.symbol == artifact.symbol)
                self._summaries[artifact.text_hash] = summary(rows, function, artifact.target, None, 0, None)
            return self._summaries[artifact.text_hash]


def _code(started: Sequence[Launch]) -> str:
    parts = [(one.artifact.symbol, one.artifact.text_hash, one.grid, one.block, one.shared) for one in started]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _largest(values: Any) -> int | None:
    return max((v for v in values if v is not None), default=None)


def by_key(compiled: Sequence[Compiled]) -> Mapping[Key, Compiled]:
    return {key(one.configuration): one for one in compiled}


__all__ = ["WARP", "Compiled", "Compiler", "by_key"]
