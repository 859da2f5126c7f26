"""The options of `tune`, and the kernels, workloads and spaces that follow from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay import host, provenance
from assay.backends import Availability, Level, backend
from assay.backends import here as available
from assay.bench import sweep
from assay.catalog.asked import asked
from assay.catalog.select import Named, select
from assay.catalog.tunables import refuse_unknown, tuned
from assay.dtype import dtype
from assay.errors import UsageError
from assay.inspect.build import LANGUAGES
from assay.kernel import Kernel
from assay.op import Op
from assay.target import DEFAULT, Target
from assay.target import target as target_of
from assay.tune.space import Space, space_of
from assay.tune.strategies import STRATEGIES
from assay.workload import Workload

SMALL = 40
"""The largest space that is measured exhaustively if no strategy is named."""


@dataclass(frozen=True)
class Options:
    """The options of `tune`."""

    op: str | None = None
    """The op that a bare .cu file computes."""
    dtypes: tuple[str, ...] = ()
    """If empty, the first dtype that each op declares."""
    workload: str = ""
    """If given, kernels are tuned for this workload only."""
    axes: Mapping[str, Iterable[int]] = field(default_factory=dict)
    """A sweep: kernels are tuned for every combination of these sizes."""
    strategy: str = ""
    """`exhaustive`, `random`, `tpe` or `guided`; if empty, exhaustive for a small space, guided for a large one."""
    most: int | None = None
    """The most configurations that are measured; if None, all of them if exhaustive, else a tenth of the space."""
    target: str = ""
    """If given, kernels are only compiled for this target and ranked, unless it is this machine's GPU."""
    workloads: int = 6
    """Workloads besides the tuned one that each configuration is checked on before it is timed."""
    rounds: int = 5
    """Rounds of timing in which configurations are screened; the finalists get twice as many."""
    budget: float = 1.0
    """Seconds of timing for each configuration."""
    seconds: float = 60.0
    """The time limit of one round, and of one workload of a check."""
    threads: int = 0
    """Threads of CPU kernels; 0 means one per core."""
    again: bool = False
    """Whether to measure configurations that already have a record."""
    seed: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    """Tunables fixed by the user."""
    backends: tuple[str, ...] = ()
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class TunePlan:
    """One kernel, the workload it is tuned for, and its space."""

    kernel: Kernel
    op: Op
    workload: Workload
    space: Space
    here: Availability
    target: Target | None
    """The target that configurations are compiled for before any runs; None for a CPU kernel, which is not compiled
    ahead."""
    measured: bool
    """Whether configurations run here; otherwise they are only compiled and ranked."""
    strategy: str
    most: int


def plan(what: Iterable[Named], options: Options) -> list[TunePlan]:
    """Return one plan per kernel and workload. Raise UsageError if nothing can be tuned as requested."""
    if options.strategy and options.strategy not in STRATEGIES:
        raise UsageError(f"no strategy called '{options.strategy}'", fix=f"one of: {', '.join(STRATEGIES)}")
    if options.rounds < 5:
        raise UsageError(f"{options.rounds} rounds are too few to compare two times", fix="--rounds 5 or more")
    choices = select(list(what), options.op)
    if options.backends:
        choices = [c for c in choices if c[0].address.backend in options.backends]
    several = len(choices) > 1
    tunable = [c for c in choices if set(c[0].tune) - set(c[0].fixed)]
    if not tunable and choices:
        kernel, op = choices[0]
        space_of(kernel, Workload.of(op))  # raises the error that explains what to declare
    refuse_unknown(tunable, options.parameters)
    plans = []
    for kernel, op in tunable:
        for workload in _workloads(kernel, op, options):
            plans.append(_planned(kernel, op, workload, options, several))
    if not plans:
        raise UsageError("nothing to tune", fix="`assay list` shows what there is")
    return plans


def few(count: int) -> int:
    """Return how many of `count` configurations a strategy measures by default."""
    return max(8, count // 10)


def _planned(kernel: Kernel, op: Op, workload: Workload, options: Options, several: bool) -> TunePlan:
    if workload.inplace:
        raise UsageError("an in-place workload changes its own inputs", fix="leave out inplace=1")
    space = space_of(kernel, workload, tuned(kernel, op, options.parameters))
    if not space.configurations:
        raise UsageError(
            f'no configuration of {kernel} fits {workload}: fits="{kernel.fits}"',
            fix="widen tune= or fits=, or choose another workload",
        )
    here, compiled = available(kernel), kernel.address.backend in LANGUAGES
    if options.target and not compiled and not several:
        raise UsageError(f"{kernel} is not compiled for {options.target}: it runs on the CPU", fix="leave out --target")
    gpu = host.gpu()
    native = gpu.target if gpu else None
    target = (target_of(options.target) if options.target else native or DEFAULT) if compiled else None
    runs = here.level is Level.RUN and (target is None or not options.target or target == native)
    if runs and target is not None:
        target = backend(kernel.address.backend).built_for(target)
    strategy = options.strategy or ("exhaustive" if len(space.configurations) <= SMALL else "guided")
    count = len(space.configurations)
    most = min(count, options.most or (count if strategy == "exhaustive" else few(count)))
    return TunePlan(kernel, op, workload, space, here, target, runs, strategy, most)


def _workloads(kernel: Kernel, op: Op, options: Options) -> list[Workload]:
    if options.workload:
        return [asked(options.workload, op)]
    declared = kernel.dtypes or op.dtypes
    names = [dtype(n).name for n in options.dtypes or declared[:1]]
    return sweep.workloads(op, [n for n in names if n in declared], options.axes, options.seed)
