"""Times of the kernels alone, as `assay bench` takes them, on exactly the model's workloads, each beside PyTorch's own
in the same rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay import host
from assay.bench import verb as bench
from assay.bench.evidence import BenchEvidence
from assay.errors import AssayError
from assay.models.packed import plain
from assay.models.studies.infer.evidence import Alone
from assay.models.studies.infer.planning import Plan
from assay.models.studies.infer.variants import named
from assay.models.swap.rules import FUSIONS
from assay.record import Status
from assay.worker.fresh import Tick

_ROUNDS = 5


@dataclass(frozen=True)
class Times:
    known: dict[tuple[str, str], Alone] = field(default_factory=dict)
    """(kernel, workload) → its time."""
    why: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kernel, workload) → why there is no time."""

    def of(self, kernel: str, workload: str) -> Alone | str:
        key = kernel, workload
        return self.known[key] if key in self.known else self.why.get(key, "it was not timed alone")


@dataclass(frozen=True)
class Baseline:
    """What PyTorch computes at a site where a kernel of an op is swapped in."""

    site: str
    """The op that the model has there."""
    kernel: str
    workload: Callable[[str], str] = str
    """Maps the kernel's workload to PyTorch's."""
    file: Path | None = None
    """File that declares it, if it is not in the library."""


def baseline(op: str) -> Baseline:
    if op in ("mx_linear", "int_linear"):  # their own torch kernel unpacks the weight first
        return Baseline("linear", plain.NAME, plain.workload, plain.FILE)
    return Baseline(next((pair for pair, fused in FUSIONS.items() if fused == op), op), f"{op}/torch")


def times(planned: Plan, tick: Tick) -> Times:
    """Time the kernels alone. Equal workloads from different sites or batches are timed once."""
    taken = Times()
    if not planned.alone:
        return taken
    effort, options = planned.options.effort, planned.options
    setting = bench.Options(
        rounds=_ROUNDS,
        budget=min(effort.alone_budget, 4 * planned.budget),
        threads=effort.threads,
        second_clock=False,
        seconds=options.timeout,
        seed=effort.seed,
        run=options.run,
    )
    plans: list[bench.BenchPlan] = []
    asked: dict[str, set[str]] = {}
    """Requested workloads by the workload that is timed, which may lack outputs that PyTorch does not give."""
    for (op, text), kernels in _wanted(planned).items():
        try:
            if planned.subject.device == "cpu" and host.runs_on_gpu():
                raise AssayError("beside a GPU, bench times PyTorch there and not on the CPU")
            cell = _cell(op, text, kernels, setting)
            plans += cell
            for one in cell:
                own = one.workload.op.name == op
                asked.setdefault(str(one.workload), set()).add(text if own else str(one.workload))
        except AssayError as problem:
            taken.why.update({(name, text): problem.what for name in kernels})
    for record in bench.run(plans, setting, lambda text: tick(f"alone: {text}")) if plans else ():
        hot = BenchEvidence.of(record).hot
        for key in ((record.kernel, text) for text in asked.get(record.workload, {record.workload})):
            if record.median is None or hot is None or record.status is Status.FAIL:
                taken.why[key] = record.reason
            else:
                taken.known[key] = Alone(record.median, hot.median)
    return taken


def _cell(op: str, text: str, kernels: dict[str, str], setting: bench.Options) -> list[bench.BenchPlan]:
    torch = baseline(op)
    here = replace(setting, op=op, workload=text, against=() if torch.file else setting.against)
    plans = [p for p in bench.plan(list(kernels.values()), here) if p.workload.op.name == op]
    if torch.file is None:
        return plans
    return [*bench.plan([torch.file], replace(setting, workload=torch.workload(text), against=())), *plans]


def _wanted(planned: Plan) -> dict[tuple[str, str], dict[str, str]]:
    """Return the kernels of all variants that can be timed: (op, workload) → kernel name → the text that selects it."""
    timed = [v for v in planned.variants if not v.cannot and not v.interpreted]
    kernels: dict[str, dict[str, str]] = {}
    for variant in timed:
        for called, (kernel, op) in named(variant.rules, planned.subject.device):
            kernels.setdefault(op.name, {})[kernel.name] = called
    workloads = (of for batch in planned.alone for of in planned.workloads[batch])
    return {(op, text): kernels[op] for op, text in workloads if op in kernels}
