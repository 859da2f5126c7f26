"""The verb itself: what a user may set, which cells follow from it, records as they are ready."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from assay import provenance
from assay.backends import Level, backend
from assay.backends import here as available
from assay.bench import sweep
from assay.bench.cell import COPY, Cell, Settings
from assay.bench.entrant import Effort, Entrant, identity
from assay.bench.processes import Processes
from assay.bench.truth import Truth
from assay.catalog import library
from assay.catalog.asked import asked
from assay.catalog.called import called
from assay.catalog.select import Choice, Named, everything, select
from assay.catalog.tunables import refuse_unknown, tuned
from assay.check.plain import PlainTorch
from assay.dtype import dtype
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.machine.model import Model, best, this_device
from assay.op import Op
from assay.record import Record, Status
from assay.worker import Limits, Pool
from assay.workload import Workload


@dataclass(frozen=True)
class Options:
    """What a user may set."""

    op: str | None = None
    """Which op a bare .cu file computes."""
    dtypes: tuple[str, ...] = ()
    """Empty: the first that each op declares."""
    workload: str = ""
    """This one alone."""
    axes: Mapping[str, Iterable[int]] = field(default_factory=dict)
    """A sweep: every combination."""
    against: tuple[str, ...] = ("torch",)
    """Backends, or addresses, to compare with; the first is the baseline."""
    rounds: int = 10
    """At least so many."""
    budget: float = 8.0
    """Seconds of measuring for each kernel and workload, if the times do not stand before."""
    seconds: float = 120.0
    threads: int = 0
    """Of CPU kernels; 0: all cores."""
    second_clock: bool = True
    """Whether the device's own record of what ran is taken too, on a GPU. It costs seconds for each kernel."""
    seed: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    backends: tuple[str, ...] = ()
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Plan:
    """One cell to be: a workload and the kernels compared on it."""

    op: Op
    workload: Workload
    kernels: list[Kernel]
    baseline: str
    """Its identity; empty where there is none."""


def plan(what: Iterable[Named], options: Options) -> list[Plan]:
    if options.rounds < 5:
        raise UsageError(f"{options.rounds} rounds say nothing of the offset between rounds", fix="--rounds 5 or more")
    named = list(what)
    choices: list[Choice] = select(named, options.op) if named else everything()
    if options.backends:
        choices = [c for c in choices if c[0].address.backend in options.backends]
    refuse_unknown(choices, options.parameters)
    by_op: dict[tuple[str, str], tuple[Op, list[Kernel]]] = {}
    for kernel, op in choices:
        by_op.setdefault((op.name, op.source), (op, []))[1].append(kernel)
    plans = []
    for op, kernels in by_op.values():
        rivals = _rivals(op, options.against)
        for workload in _workloads(op, options):
            if workload.inplace:
                raise UsageError("an in-place workload changes its own inputs", fix="leave out inplace=1")
            entered = list({k.identity: k for k in (*kernels, *rivals)}.values())
            fits = [k for k in entered if _takes(k, op, workload)]
            plans.append(Plan(op, workload, fits, rivals[0].identity if rivals else ""))
    if not plans:
        raise UsageError("nothing to time", fix="`assay list` shows what there is")
    return plans


def _takes(kernel: Kernel, op: Op, workload: Workload) -> bool:
    if kernel.dtypes and workload.dtype.name not in kernel.dtypes:
        return False
    return not set(workload.without) & set(kernel.requires) and op.narrowed(most=kernel.most).allows(workload)


def _rivals(op: Op, against: tuple[str, ...]) -> list[Kernel]:
    found: list[Kernel] = []
    if library.ops().get(op.name) is None or op.source != library.ops()[op.name].source:
        return found  # a user's op, whatever it is called, is not what the library's kernels compute
    for name in against:
        address = name if "/" in name else f"{op.name}/{name}"
        mine = [k for k in library.kernels() if k.name == address and k.address.op == op.name]
        if not mine and "/" not in name and name not in {k.address.backend for k in library.kernels()}:
            raise UsageError(f"--against {name}: no such backend", fix="torch, inductor, … or an address: gelu/cuda")
        found += mine
    return found


def _workloads(op: Op, options: Options) -> list[Workload]:
    if options.workload:
        return [asked(options.workload, op)]
    numbers = [d for d in (dtype(n).name for n in options.dtypes or op.dtypes[:1]) if d in op.dtypes]
    return sweep.workloads(op, numbers, options.axes, options.seed)


def bench(*what: str | Path | Callable[..., Any], options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Time kernels: ops, addresses, patterns, files or functions. Yields one record per kernel and workload."""
    for name in ("dtypes", "against", "backends"):
        if isinstance(settings.get(name), str):
            settings[name] = tuple(settings[name].split(","))
    chosen = options or Options(**settings)
    yield from run(plan(what, chosen), chosen)


def run(plans: list[Plan], options: Options, tick: Callable[[str], None] = lambda text: None) -> Iterator[Record]:
    """One cell after another: nothing else may run on the device while one is timed."""
    threads = options.threads or os.cpu_count() or 1
    names = _names(plans)
    most = min(8 << 30, psutil.virtual_memory().available // 4)
    with Pool(Limits(options.seconds)) as pool, Processes(pool) as processes:
        pool.prepare({(k.address.backend, available(k).mode) for k in _timed(plans)})
        plain = PlainTorch(pool)

        @cache
        def model(device: str) -> Model | None:
            return best(this_device(device))

        settings = Settings(
            options.rounds,
            options.budget,
            options.seconds,
            Effort(threads=threads, most_bytes=most),
            options.seed,
            options.run,
            model,
            lambda e: _replay(e, options),
            options.second_clock,
            {},
        )
        for number, planned in enumerate(plans):
            runnable, records = _sorted(planned, options)
            yield from records
            processes.retire({identity(None), *(identity(k) for p in plans[number:] for k in p.kernels)})
            if not runnable:
                continue
            truths: dict[str, Truth] = {}
            entrants = []
            for kernel, here in runnable:
                if here.device not in truths:
                    truths[here.device] = Truth(planned.op, planned.workload, plain, here.device)
                mine = tuned(kernel, planned.op, options.parameters)
                entrants.append(Entrant(names[kernel.identity], kernel, here, truths[here.device], processes, mine))
            yardstick = backend("torch").availability()
            if yardstick.device in truths:
                entrants.append(Entrant(COPY, None, yardstick, truths[yardstick.device], processes))
            baseline = names.get(planned.baseline, "")
            yield from Cell(planned.op, planned.workload, entrants, baseline, settings).run(tick)


def _names(plans: list[Plan]) -> dict[str, str]:
    """What each kernel is called in its records: its address, with its file where two kernels share the address."""
    kernels = {k.identity: k for planned in plans for k in planned.kernels}
    count = Counter(k.name for k in kernels.values())
    return {i: f"{k.name} ({provenance.shown(k.file)})" if count[k.name] > 1 else k.name for i, k in kernels.items()}


def _timed(plans: list[Plan]) -> Iterator[Kernel]:
    """Every kernel that can be timed here."""
    for planned in plans:
        yield from (k for k in planned.kernels if available(k).level is Level.RUN)


def _sorted(planned: Plan, options: Options) -> tuple[list[tuple[Kernel, Any]], list[Record]]:
    """What can be timed here, and records for what cannot."""
    runnable, records = [], []
    for kernel in planned.kernels:
        here = available(kernel)
        if here.level is Level.RUN:
            runnable.append((kernel, here))
            continue
        why = (
            "an interpreter's time says nothing about the kernel"
            if here.level is Level.INTERPRET
            else f"{here.reason}; {here.fix}"
        )
        source = provenance.source_of(kernel.file, kernel.line)
        told = provenance.provenance(options.seed)
        workload = str(planned.workload)
        records.append(
            Record("bench", kernel.name, workload, Status.SKIPPED, why, options.run, source=source, provenance=told)
        )
    return runnable, records


def _replay(entrant: Entrant, options: Options) -> str:
    assert entrant.kernel is not None
    named = called(entrant.kernel, entrant.truth.op, entrant.parameters)
    against = f" --against {','.join(options.against)}" if options.against else ""
    return f"assay bench {named} --workload {entrant.truth.workload}{against}"
