"""The kernels by themselves, as `assay bench` times them: on exactly the workloads the model has, each beside
PyTorch's own in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from assay import host
from assay.bench import verb as bench
from assay.catalog import library
from assay.errors import AssayError
from assay.models.packed import plain
from assay.models.studies.infer.planning import Plan
from assay.models.studies.infer.variants import named
from assay.models.swap.declared import FUSIONS
from assay.record import Record
from assay.worker.fresh import Tick


@dataclass(frozen=True)
class Alone:
    """Seconds of one call by itself."""

    cold: float
    hot: float

    def to_dict(self) -> dict[str, float]:
        return {"cold": self.cold, "hot": self.hot}


@dataclass(frozen=True)
class Times:
    found: dict[tuple[str, str], Alone]
    """Kernel and workload → its time."""
    why: dict[tuple[str, str], str]
    """… → why there is none."""

    def of(self, kernel: str, workload: str) -> Alone | str:
        key = kernel, workload
        return self.found[key] if key in self.found else self.why.get(key, "it was not timed alone")


@dataclass(frozen=True)
class Baseline:
    """What PyTorch computes where a kernel of an op is swapped in."""

    site: str
    """The op that the model has there."""
    kernel: str
    workload: Callable[[str], str] = str
    """From the kernel's workload to PyTorch's."""
    file: Path | None = None
    """Where it is declared, if not in the library."""


def baseline(op: str) -> Baseline:
    if op == "mx_linear":  # whose own torch form unpacks the weight first
        return Baseline("linear", plain.NAME, plain.workload, plain.FILE)
    return Baseline(next((pair for pair, fused in FUSIONS.items() if fused == op), op), f"{op}/torch")


def times(planned: Plan, tick: Tick) -> Times:
    """Equal workloads are timed once, whichever site or batch they come from."""
    found, why = Times({}, {}), ""
    if not planned.alone:
        return found
    if planned.subject.device == "cpu" and host.runs_on_gpu():
        why = "beside a GPU, bench times PyTorch there and not on the CPU"
    effort, options = planned.options.effort, planned.options
    setting = bench.Options(
        rounds=effort.alone_rounds,
        budget=min(effort.alone_budget, 4 * planned.budget),
        threads=effort.threads,
        second_clock=False,
        seconds=options.timeout,
        seed=effort.seed,
        run=options.run,
    )
    plans: list[bench.Plan] = []
    for (op, text), kernels in _wanted(planned).items():
        try:
            plans += [] if why else _cell(op, text, kernels, setting)
        except AssayError as problem:
            found.why.update(dict.fromkeys(((k, text) for k in kernels), problem.what))
        found.why.update(dict.fromkeys(((k, text) for k in kernels), why) if why else {})
    for record in bench.run(plans, setting, lambda text: tick(f"alone: {text}")) if plans else ():
        _keep(record, found)
    return found


def _cell(op: str, text: str, kernels: dict[str, str], setting: bench.Options) -> list[bench.Plan]:
    theirs = baseline(op)
    here = replace(setting, op=op, workload=text, against=() if theirs.file else setting.against)
    mine = [p for p in bench.plan(list(kernels.values()), here) if p.op.name == op]
    if theirs.file is None:
        return mine
    return [*bench.plan([theirs.file], replace(setting, workload=theirs.workload(text), against=())), *mine]


def _wanted(planned: Plan) -> dict[tuple[str, str], dict[str, str]]:
    """Op and workload → the kernels of all variants that can be timed: their names, and what to call them by."""
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    kernels = list(_kernels(planned))
    for batch in planned.alone:
        for op, text in planned.workloads[batch]:
            mine = {name: called for its_op, name, called in kernels if its_op == op}
            if mine:
                wanted.setdefault((op, text), {}).update(mine)
    return wanted


def _kernels(planned: Plan) -> Iterable[tuple[str, str, str]]:
    for variant in planned.variants:
        if not variant.cannot and not variant.interpreted:
            yield from (
                (op.name, kernel.name, called) for called, (kernel, op) in named(variant.rules, planned.subject.device)
            )


def _keep(record: Record, found: Times) -> None:
    key = record.kernel, record.workload
    if record.median is None or str(record.status) == "fail":
        found.why[key] = record.reason
    else:
        found.found[key] = Alone(record.median, float(record.evidence["hot"]["median"]))


def derived(op: str) -> bool:
    """Has PyTorch's own kernel no `out=`? Then its time alone holds a copy of the result, which no model makes."""
    return any(k.name == f"{op}/torch" and k.file is None for k in library.kernels())
