"""Compiles configurations on all cores, without a GPU, and derives their figures from the code."""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from assay.artifact import Artifact
from assay.backends.base import Launch
from assay.errors import AssayError, UsageError
from assay.inspect.build import Builder
from assay.inspect.evidence import Summary
from assay.inspect.occupancy import WARP, occupancy
from assay.inspect.summary import summary
from assay.inspect.table import tables
from assay.isa.bundle import bundle
from assay.isa.chips import chip
from assay.isa.cubin import functions, sections
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
    """The result of compiling one configuration."""

    configuration: Configuration
    static: Static | None = None
    problem: str = ""
    """Why it was not built."""
    excess: str = ""
    """The resource that it needs more of than the target has, so that it cannot be launched there."""
    tunes_itself: bool = False
    """Whether its first call times variants of its own."""


@dataclass
class Compiler:
    """Compiles the configurations of one kernel on one workload. Code shared by several of them is read once."""

    kernel: Kernel
    workload: Workload
    target: Target
    pool: Pool
    model: Model | None
    _summaries: dict[str, Summary] = field(default_factory=dict)
    """Summaries by the hash of the code."""

    def compiled(
        self, configurations: Sequence[Configuration], tick: Callable[[Configuration], None] = lambda _: None
    ) -> list[Compiled]:
        """Return the result for each configuration, in order. All cores compile, then all cores read the code. `tick`
        is called as each is built."""
        width = max(1, min(len(configurations), os.cpu_count() or 1))
        waiting, built = deque(enumerate(configurations)), dict[int, list[Launch] | Compiled]()
        with ThreadPoolExecutor(width) as executor:
            try:
                for done in [executor.submit(self._build, waiting, built, tick) for _ in range(width)]:
                    done.result()
            finally:
                waiting.clear()
        self._summaries |= _read([one for each in built.values() if isinstance(each, list) for one in each], width)
        return [self._known(c, built[i]) for i, c in enumerate(configurations)]

    def _build(
        self,
        waiting: deque[tuple[int, Configuration]],
        built: dict[int, list[Launch] | Compiled],
        tick: Callable[[Configuration], None],
    ) -> None:
        """Build configurations in one process until none is waiting."""
        with Builder(self.kernel, self.pool) as builder:
            while waiting:
                try:
                    index, configuration = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    built[index] = builder.launches(self.workload, self.target, configuration)
                except UsageError:
                    raise
                except AssayError as problem:
                    built[index] = Compiled(configuration, problem=problem.what.strip())
                tick(configuration)

    def _known(self, configuration: Configuration, built: list[Launch] | Compiled) -> Compiled:
        if isinstance(built, Compiled):
            return built
        if not built:
            return Compiled(configuration, problem="it launches nothing on this workload")
        tunes_itself = any(one.artifact.tunes_itself for one in built)
        return Compiled(configuration, self._static(built), excess=self._excess(built), tunes_itself=tunes_itself)

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
        """Return why the device would refuse a launch; empty if it would not."""
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
        return self._summaries[artifact.text_hash]


def _read(started: Sequence[Launch], width: int) -> dict[str, Summary]:
    """Return inspect's summaries of the code of these launches, by the code's hash. Each core reads a share in a
    process of its own: listings are read in Python, so threads would wait for each other."""
    different = list({one.artifact.text_hash: one.artifact for one in started}.values())
    shares = [different[i::width] for i in range(width) if different[i::width]]
    if len(shares) < 2:
        return _summaries(different) if different else {}
    try:
        with ProcessPoolExecutor(len(shares), multiprocessing.get_context("fork")) as executor:
            return dict(each for share in executor.map(_summaries, shares) for each in share.items())
    except BrokenProcessPool:  # a process was lost, perhaps for lack of memory
        return _summaries(different)


def _summaries(artifacts: Sequence[Artifact]) -> dict[str, Summary]:
    """Return the summaries of one share. All are built for the same target and disassembled together."""
    code = [next(f for f in functions(a.cubin) if f.symbol == a.symbol) for a in artifacts]
    read = tables(bundle(artifacts[0].cubin, code))
    return {
        artifact.text_hash: summary(read[str(i)], function, artifact.target, None, 0, None)
        for i, (artifact, function) in enumerate(zip(artifacts, code, strict=True))
    }


def _code(started: Sequence[Launch]) -> str:
    """Return a hash of code, constants and launches. It can be equal for two names, such as two instances of a
    template."""
    parts = [
        (one.artifact.text_hash, _constants(one.artifact), one.grid, one.block, one.shared, one.cluster)
        for one in started
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _constants(artifact: Artifact) -> list[bytes]:
    """Return the constants that the code reads, without bank 0, which contains the arguments of a launch."""
    names = (".nv.constant", ".nv.global")
    return [s.data for s in sections(artifact.cubin) if s.name.startswith(names) and ".nv.constant0" not in s.name]


def _largest(values: Any) -> int | None:
    return max((v for v in values if v is not None), default=None)


def by_key(compiled: Sequence[Compiled]) -> Mapping[Key, Compiled]:
    return {key(one.configuration): one for one in compiled}


__all__ = ["WARP", "Compiled", "Compiler", "by_key"]
