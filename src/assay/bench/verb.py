"""Runs one plan after another and yields records as they are ready."""

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import Level, backend, where_timed
from assay.bench.cell import COPY, Cell
from assay.bench.entrant import YARDSTICKS, Entrant
from assay.bench.planning import BenchPlan, Options, plan
from assay.bench.processes import Processes, free_bytes
from assay.bench.spent import Spent
from assay.bench.truth import Truth
from assay.catalog.tunables import tuned
from assay.check.plain import PlainTorch
from assay.kernel import Kernel
from assay.machine.model import Model, best, this_device
from assay.record import Record, Status
from assay.settings import settings_of
from assay.store.tuned import TunedRecords, TunedValues
from assay.watching import watched
from assay.worker import Limits, Pool


def bench(*what: str | Path | Callable[..., Any], options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Time kernels, given as ops, addresses, patterns, files or functions. Yield one record per kernel and workload."""
    for name in ("dtypes", "against", "backends"):
        if isinstance(settings.get(name), str):
            settings[name] = tuple(settings[name].split(","))
    chosen = options or settings_of(Options, settings)
    plans = plan(what, chosen)
    names = [f"{kernel.name} {planned.workload.dtype}" for planned in plans for kernel in planned.kernels]
    yield from watched("bench", run(plans, chosen), names)


def run(
    plans: list[BenchPlan],
    options: Options,
    tick: Callable[[str], None] = lambda text: None,
    spent: Spent | None = None,
) -> Iterator[Record]:
    """Time one cell after another, since nothing else may run on the device meanwhile. Times by stage are added to
    `spent`."""
    spent = spent or Spent()
    deadline = time.monotonic() + options.limit if options.limit else math.inf
    names = _names(plans)
    threads = options.threads or os.cpu_count() or 1
    round_seconds = options.budget / options.rounds
    with (
        Pool(Limits(options.seconds)) as pool,
        Processes(
            pool, options.seconds, threads, free_bytes(), options.samples, options.others, round_seconds, spent
        ) as processes,
    ):
        timed = (k for planned in plans for k in planned.kernels if where_timed(k).level is Level.RUN)
        pool.prepare_meanwhile({(k.address.backend, where_timed(k).mode) for k in timed})
        plain, stored = PlainTorch(pool), TunedRecords()

        @cache
        def model(device: str) -> Model | None:
            return best(this_device(device))

        for number, planned in enumerate(plans):
            runnable = []
            late = time.monotonic() > deadline
            for kernel in planned.kernels:
                if late:
                    yield _skipped(kernel, "--limit left it out: give it more time, or name fewer", planned, options)
                elif (here := where_timed(kernel)).level is Level.RUN:
                    runnable.append((kernel, here))
                else:
                    interpreted = "an interpreter's time says nothing about the kernel"
                    reason = interpreted if here.level is Level.INTERPRET else f"{here.reason}; {here.fix}"
                    yield _skipped(kernel, reason, planned, options)
            processes.retire({YARDSTICKS, *(k.identity for p in plans[number:] for k in p.kernels)})
            if not runnable:
                continue
            workload = planned.workload
            truths = {device: Truth(workload, plain, device) for device in {here.device for _, here in runnable}}
            entrants = []
            for kernel, here in runnable:
                given = tuned(kernel, workload.op, options.parameters)
                found = stored.of(kernel, workload, here.device) if options.tuned else TunedValues()
                entrants.append(
                    Entrant(
                        names[kernel.identity],
                        kernel,
                        here,
                        truths[here.device],
                        processes,
                        {**found.parameters, **given},
                        found.source,
                    )
                )
            yardstick = backend("torch").availability()
            if yardstick.device in truths:
                entrants.append(Entrant(COPY, None, yardstick, truths[yardstick.device], processes))
            yield from Cell(workload, entrants, names.get(planned.baseline, ""), options, model, spent).run(tick)


def _names(plans: list[BenchPlan]) -> dict[str, str]:
    """Return each kernel's name by identity: its address, with its file if two kernels share the address."""
    kernels = {k.identity: k for planned in plans for k in planned.kernels}
    count = Counter(k.name for k in kernels.values())
    return {i: f"{k.name} ({provenance.shown(k.home)})" if count[k.name] > 1 else k.name for i, k in kernels.items()}


def _skipped(kernel: Kernel, reason: str, planned: BenchPlan, options: Options) -> Record:
    """Return the record of a kernel that is not timed."""
    return Record(
        "bench",
        kernel.name,
        str(planned.workload),
        Status.SKIPPED,
        reason,
        options.run,
        source=provenance.source_of(kernel.home, kernel.line),
        provenance=provenance.provenance(options.seed),
    )
