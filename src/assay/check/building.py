"""Checks a kernel that cannot run here: builds every instance that the edges of the contract would launch."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from assay.backends import backend, launch_limits
from assay.check import launch_sites, outcome
from assay.check.judge import Finding
from assay.coverage import Effort, Planned, plan
from assay.dtype import DType
from assay.kernel import Kernel
from assay.op import Op
from assay.target import Target
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import Build
from assay.worker.request import Call
from assay.workload import Workload

_EFFORT = Effort(14, 1 << 14, 1 << 18, 1 << 18, 0, again=0)
_LARGEST = 1 << 27
"""Elements of the largest workload that is built only for its launches."""
_PAST_A_GRID = 65_537
"""Longer than the second and third dimension of a grid, and than the shared memory of a block."""


@dataclass
class Built:
    """The results of the builds."""

    workloads: int = 0
    left: int = 0
    """The number of workloads that the time limit left out."""
    instances: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """The instances launched, by name and hash of the machine code."""
    finding: Finding | None = None
    workload: Workload | None = None
    """The workload of the finding."""
    trace: str = ""
    worker: Worker | None = None
    """The worker, if it is still healthy."""
    idle: bool = False
    """Whether the kernel launched nothing on any workload, and an output has elements on some."""


def build(
    kernel: Kernel,
    op: Op,
    points: Iterable[Workload],
    mode: str,
    parameters: dict[str, Any],
    target: Target,
    pool: Pool,
    worker: Worker | None,
    deadline: float | None = None,
) -> Built:
    """Build the kernel for these workloads, up to the first failure or the time limit."""
    built = Built()
    chosen = list(points)
    try:
        built.worker = worker or pool.worker(kernel.address.backend, mode)
        for number, workload in enumerate(chosen):
            if deadline is not None and time.monotonic() > deadline:
                built.left = len(chosen) - number
                return built
            call = Call.of(kernel, workload, mode, parameters)
            try:
                answer = built.worker.ask(Build(call, str(target)))
            except Refused as refused:
                built.finding = outcome.raised(refused.failure).finding
                built.workload, built.trace = workload, refused.failure.trace
                return built
            built.workloads += 1
            if not answer.launches and _launches_alone(kernel) and _writes(workload):
                built.finding = Finding("launch", "the kernel launches nothing, and its output has elements")
                built.workload = workload
                return built
            for launch in answer.launches:
                a = launch.artifact
                used = launch.shared + (a["shared"] or 0)
                registers, cluster = a["registers"] or 0, launch.cluster
                why = launch_limits.problem(a["name"], launch.grid, launch.block, used, registers, target, cluster)
                if why:
                    built.finding, built.workload = Finding("launch", why), workload
                    return built
                shape = {"grid": launch.grid, "block": launch.block, "dynamic_shared": launch.shared}
                built.instances[a["name"], a["text_hash"]] = {**a, **shape}
    except WorkerLost as lost:
        if lost.blameless:
            raise
        built.finding, built.worker = Finding(lost.how, lost.detail), None
        return built
    if not built.instances and any(map(_writes, chosen)):
        built.finding, built.idle = nothing_launched(kernel, built.workloads), True
    return built


def nothing_launched(kernel: Kernel, workloads: int) -> Finding:
    """Return the finding on a kernel that is right, if at all, by other means than its language: PyTorch's, say."""
    language = backend(kernel.address.backend).title
    return Finding(
        "launch",
        f"the kernel launches nothing in {language} on any of {workloads} workloads\n"
        '  → compute the result in a kernel, or declare the language that does: backend="torch"',
    )


def _launches_alone(kernel: Kernel) -> bool:
    """True if only a launch can write the outputs: a bare .cu file has no Python beside it."""
    return kernel.file is not None and kernel.file.suffix == ".cu"


def _writes(workload: Workload) -> bool:
    """True if some output has elements."""
    outputs = (tensor for name, tensor in workload.op.outputs.items() if name not in workload.without)
    return any(math.prod(workload.shape(tensor)) for tensor in outputs)


def edges(op: Op, dtype: DType) -> list[Workload]:
    """Return a few workloads over all regimes."""
    return [row.workload for row in plan(op, dtype, _EFFORT).rows]


def launched(op: Op, dtype: DType) -> list[Workload]:
    """Return the workloads for which a kernel that cannot run here is launched: the edges, and each axis alone longer
    than a launch may be that takes one block for each of its elements, or shared memory for all."""
    usual = Workload.of(op, f"dtype={dtype}")
    shortest = {name: max(1, axis.min) for name, axis in op.axes.items()}
    sizes = [shortest | {name: max(_PAST_A_GRID, least)} for name, least in shortest.items()]
    longer = [replace(usual, axes=tuple((name, each[name]) for name, _ in usual.axes)) for each in sizes]
    return edges(op, dtype) + [w for w in longer if w.allowed and w.elements <= _EFFORT.typical]


def for_launches(
    kernel: Kernel,
    op: Op,
    dtype: DType,
    points: Iterable[Workload],
    parameters: dict[str, Any],
    target: Target,
    pool: Pool,
) -> list[Workload]:
    """Return workloads for the launches in the kernel's source that few of these workloads lead to. They may be large,
    because nothing runs."""
    rows = [Planned(workload, "edge") for workload in points]
    effort = replace(_EFFORT, most=_LARGEST)
    found = launch_sites.find(kernel, op, dtype, rows, effort, 0, (), parameters, target, pool)
    return [row.workload for row in found.added]


def specializations(op: Op, dtype: DType) -> list[Workload]:
    """Return the typical workload, and those with the most sizes of each kind that a compiler specialises for:
    multiples of 16, 1, and all others. All tensors start on a natural boundary."""
    small = [replace(w, offset=0) for w in edges(op, dtype) if all(size for _, size in w.axes)]
    cases: tuple[Callable[[int], bool], ...] = (lambda n: n % 16 == 0, lambda n: n == 1, lambda n: n > 1 and n % 16 > 0)
    chosen = [Workload.of(op, f"dtype={dtype}")]
    chosen += [max(small, key=lambda w: sum(case(size) for _, size in w.axes)) for case in cases if small]
    return list(dict.fromkeys(chosen))
