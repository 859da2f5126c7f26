"""The options of `bench`, and the workloads and kernels that follow from them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay import provenance
from assay.bench import sweep
from assay.catalog import library
from assay.catalog.asked import asked
from assay.catalog.derived import completed
from assay.catalog.select import Named, everything, select
from assay.catalog.signature import with_default
from assay.catalog.tunables import refuse_unknown
from assay.dtype import dtype
from assay.errors import UsageError
from assay.kernel import BACKENDS, Kernel
from assay.op import Op
from assay.worker.request import writes
from assay.workload import Workload


@dataclass(frozen=True)
class Options:
    """The options of `bench`."""

    op: str | None = None
    """The op that a bare .cu file computes."""
    dtypes: tuple[str, ...] = ()
    """If empty, the first dtype that each op declares."""
    workload: str = ""
    """If given, only this workload is timed."""
    axes: Mapping[str, Iterable[int]] = field(default_factory=dict)
    """A sweep: every combination of these sizes is timed."""
    against: tuple[str, ...] = ("torch",)
    """Backends or addresses to compare with; the first is the baseline."""
    rounds: int = 10
    """The least number of rounds."""
    samples: int = 5
    """Samples of cold calls in a round, at most."""
    others: int = 5
    """Samples of hot calls and of single calls in a round, at most."""
    budget: float = 8.0
    """Seconds of measuring for each kernel and workload, unless the intervals are narrow enough earlier."""
    patient: bool = True
    """Whether measuring goes on beyond the budget while an interval is wider than its value."""
    seconds: float = 120.0
    """The time limit of one round in a worker."""
    limit: float | None = None
    """Seconds after which no further workload is begun; the kernels on those left are skipped."""
    threads: int = 0
    """Threads of CPU kernels; 0 means one per core."""
    second_clock: bool = True
    """Whether the device's own record of what ran is also taken, on a GPU. It costs seconds per kernel."""
    seed: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    tuned: bool = False
    """Whether kernels take the values that `assay tune` chose for the workload's shape class, if it chose any."""
    backends: tuple[str, ...] = ()
    run: str = field(default_factory=provenance.new_run)

    def quicker(self) -> "Options":
        """Return a copy that takes less time per kernel: fewer rounds and samples, and no second clock. The intervals
        are wider."""
        return replace(self, rounds=5, samples=3, others=1, budget=0.4, second_clock=False)


@dataclass(frozen=True)
class BenchPlan:
    """One workload and the kernels to compare on it."""

    workload: Workload
    kernels: list[Kernel]
    baseline: str
    """The identity of the baseline kernel, or empty."""


def plan(what: Iterable[Named], options: Options) -> list[BenchPlan]:
    """Return one plan per op and workload. Raise UsageError if nothing can be timed as requested."""
    if options.rounds < 5:
        raise UsageError(
            f"{options.rounds} rounds are too few to tell how rounds differ from each other", fix="--rounds 5 or more"
        )
    named = list(what)
    choices = select(named, options.op) if named else everything()
    if options.backends:
        choices = [c for c in choices if c[0].address.backend in options.backends]
    refuse_unknown(choices, options.parameters)
    by_op: dict[tuple[str, str], tuple[Op, list[Kernel]]] = {}
    for kernel, op in choices:
        by_op.setdefault((op.name, op.source), (op, []))[1].append(kernel)
    _refuse_unmatched(options.against, by_op.values())
    plans = []
    for op, kernels in by_op.values():
        rivals = _rivals(op, kernels, options.against)
        entered = {k.identity: k for k in (*kernels, *rivals)}.values()
        for workload in _workloads(op, options):
            if workload.inplace:
                raise UsageError("an in-place workload changes its own inputs", fix="leave out inplace=1")
            accepting = [k for k in entered if _accepts(k, workload)]
            workload = _with_common_results(workload, accepting)
            plans.append(BenchPlan(workload, accepting, rivals[0].identity if rivals else ""))
    if not plans:
        raise UsageError("nothing to time", fix="`assay list` shows what there is")
    return plans


def _accepts(kernel: Kernel, workload: Workload) -> bool:
    """Return whether the kernel supports the workload's dtype, its inputs and its sizes."""
    op = workload.op
    if kernel.dtypes and workload.dtype.name not in kernel.dtypes:
        return False
    shorter = workload.replace(op=op.narrowed(most=kernel.most))
    return not set(workload.without) & set(kernel.requires) and shorter.allowed


def _with_common_results(workload: Workload, kernels: list[Kernel]) -> Workload:
    """Return the workload without the optional outputs that not all kernels compute, so that all are compared on the
    same results. (Plain PyTorch's LayerNorm gives no mean and rstd, which cost time to write.)"""
    op = workload.op
    extra = [n for n, t in op.outputs.items() if t.optional and n not in workload.without]
    left_out = [
        name
        for name in extra
        if not all(writes(k, name, optional=True) for k in kernels) and all(_can_leave_out(k, name) for k in kernels)
    ]
    return workload.replace(without=(*workload.without, *left_out)) if left_out else workload


def _can_leave_out(kernel: Kernel, name: str) -> bool:
    """Return whether a kernel runs without this output."""
    return kernel.file is None or name not in kernel.parameters or name in with_default(kernel)


def _offered(op: Op, chosen: list[Kernel]) -> list[Kernel]:
    """Return the kernels that an op can be compared with: the library's if it is the library's op, else those derived
    from the chosen ones. The library's kernels do not compute a user's op, even one of the same name."""
    known = library.ops().get(op.name)
    if known is not None and op.source == known.source:
        return [*(k for k in library.kernels() if k.address.op == op.name), *chosen]
    return completed(op, chosen)


def _rivals(op: Op, chosen: list[Kernel], against: tuple[str, ...]) -> list[Kernel]:
    """Return the kernels of the op that --against names."""
    addresses = [name if "/" in name else f"{op.name}/{name}" for name in against]
    offered = _offered(op, chosen)
    return [next(k for k in offered if k.name == a) for a in addresses if any(k.name == a for k in offered)]


def _refuse_unmatched(against: tuple[str, ...], by_op: Collection[tuple[Op, list[Kernel]]]) -> None:
    """Raise UsageError if a name in --against matches no kernel of any op: nothing would be compared with it."""
    for name in against:
        if "/" not in name and name not in BACKENDS:
            raise UsageError(f"--against {name}: no such backend", fix="torch, inductor, … or an address: gelu/cuda")
        if not any(_rivals(op, chosen, (name,)) for op, chosen in by_op):
            has = dict.fromkeys(k.name for op, chosen in by_op for k in _offered(op, chosen))
            raise UsageError(f"--against {name}: there is no such kernel", fix=f"one of: {', '.join(has)}")


def _workloads(op: Op, options: Options) -> list[Workload]:
    if options.workload:
        return [asked(options.workload, op)]
    names = [dtype(n).name for n in options.dtypes or op.dtypes[:1]]
    return sweep.workloads(op, [n for n in names if n in op.dtypes], options.axes, options.seed)
