"""The verb `check`: the user's options, the jobs that follow from them, and records as they become ready."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from assay import host, provenance
from assay.catalog.asked import asked
from assay.catalog.select import Choice, Named, everything, select
from assay.catalog.tunables import refuse_unknown
from assay.check import past_32_bits
from assay.check.exploring import Bounds
from assay.check.job import Job, Settings
from assay.check.plain import PlainTorch
from assay.check.schedule import grouped, side_by_side, width
from assay.dtype import dtype
from assay.errors import UsageError
from assay.inspect.gates import refuse_unknown_gates
from assay.record import Record, Status
from assay.settings import settings_of
from assay.target import Target, target
from assay.watching import watched
from assay.worker import Limits, Pool


@dataclass(frozen=True)
class Options:
    """The options of a check."""

    op: str | None = None
    """The op that a bare .cu file computes."""
    dtypes: tuple[str, ...] = ()
    """The dtypes to check; empty: all that kernel and op declare."""
    workload: str = ""
    """The only workload to check."""
    workloads: int | None = None
    """How many to plan for pairs of regimes; None: 150 on a CPU, 100 on a GPU (60 in Triton and 30 in
    inductor, which compile anew for most of them), fewer where it is interpreted."""
    thorough: bool = False
    """Whether to try eight times as many workloads, larger ones too."""
    sizes: tuple[int, ...] = ()
    """Axis lengths to try besides all others."""
    limit: float | None = None
    """Seconds for the whole run; a kernel with workloads that it leaves out is inconclusive."""
    target: Target = field(default_factory=host.target)
    seconds: float = Limits.seconds
    memory: int | None = None
    """Resident bytes a worker may use; None: most of the machine's."""
    jobs: int | None = None
    seed: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    """Tunables to use instead of the signature's defaults."""
    backends: tuple[str, ...] = ()
    run: str = field(default_factory=provenance.new_run)


def plan(what: Iterable[Named], options: Options) -> list[Job]:
    """Return one job per kernel and dtype."""
    named = list(what)
    choices: list[Choice] = select(named, options.op) if named else everything()
    if options.backends:
        choices = [c for c in choices if c[0].address.backend in options.backends]
    refuse_unknown(choices, options.parameters)
    for kernel, _ in choices:
        refuse_unknown_gates(kernel)
    jobs = []
    for kernel, op in choices:
        if options.workload:
            one = asked(options.workload, op, partial(past_32_bits.in_memory, kernel))
            jobs.append(Job(kernel, op, one.dtype, one))
            continue
        wanted = [dtype(d) for d in options.dtypes or op.dtypes]
        jobs += [Job(kernel, op, d) for d in wanted if d.name in op.dtypes]
    if not jobs:
        raise UsageError("nothing to check", fix="`assay list` shows what there is")
    return jobs


def check(*what: str | Path | Callable[..., Any], options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Check kernels: ops, addresses, patterns, files or decorated functions; everything if none is named.

    Yields one record per kernel and dtype, as each is finished."""
    chosen = options or _options(settings)
    jobs = plan(what, chosen)
    yield from watched("check", run(jobs, chosen), [f"{job.kernel.name} {job.dtype}" for job in jobs])


def _options(settings: dict[str, Any]) -> Options:
    if "dtypes" in settings:
        settings["dtypes"] = (settings["dtypes"],) if isinstance(settings["dtypes"], str) else tuple(settings["dtypes"])
    if "target" in settings:
        settings["target"] = target(settings["target"])
    return settings_of(Options, settings)


def run(jobs: list[Job], options: Options) -> Iterator[Record]:
    """Run planned jobs, several at a time."""
    wide = width(options.jobs)
    limits = Limits(options.seconds, options.memory) if options.memory else Limits(options.seconds)
    deadline = time.monotonic() + options.limit if options.limit else None
    bounds = Bounds(options.workloads, options.thorough, options.sizes, options.seed, deadline)

    def settings(pool: Pool, stop: threading.Event) -> Settings:
        return Settings(
            pool,
            PlainTorch(pool),
            options.target,
            bounds,
            options.parameters,
            options.run,
            threads=max(2, (os.cpu_count() or 2) // wide),
            stop=stop,
        )

    yield from side_by_side(grouped(jobs, wide), lambda: Pool(limits), settings, options.jobs)


class KernelFailed(AssertionError):
    """A kernel is wrong; the message is the evidence."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        lines = [f"{r.kernel} [{r.workload}]: {r.reason}\n  replay: {r.replay}" for r in records]
        super().__init__("\n".join(lines))


def verify(*what: str | Path | Callable[..., Any], **settings: Any) -> list[Record]:
    """Check kernels, and raise KernelFailed with the evidence if one is wrong, or if none passed or was compiled: a
    test in one line."""
    records = list(check(*what, **settings))
    failed = [r for r in records if r.failed]
    if failed or not any(r.status in (Status.PASS, Status.COMPILED) for r in records):
        raise KernelFailed(failed or records)
    return records
