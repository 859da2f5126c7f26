"""One workload through one worker: the kernel runs five times, and everything it did is looked at.

Three runs on fresh values in the same buffers, two more on the first values at other addresses, the last of them with
other guard contents. On a GPU a sixth, in which the inputs arrive late on the current stream. A huge workload (more
than 2**27 elements) runs once."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay import inputs as drawing
from assay.backends import Availability
from assay.check.judge import Errors, Finding, Oracle, Prior, beyond, judge, judge_maximum, oracle
from assay.dtype import dtype
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.op import Op
from assay.worker import Worker, WorkerLost
from assay.worker.channel import tensor
from assay.worker.request import Layout, message
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

    from assay.check.plain import PlainTorch

_RUNS = (
    {"values": 0, "buffers": 0, "bands": 0, "poison": 0, "late": False},
    {"values": 1, "buffers": 0, "bands": 1, "poison": 1, "late": False},
    {"values": 2, "buffers": 0, "bands": 0, "poison": 2, "late": False},
    {"values": 0, "buffers": 1, "bands": 0, "poison": 1, "late": False},
    {"values": 0, "buffers": 2, "bands": 1, "poison": 2, "late": False},
)
HUGE = 1 << 27
"""Elements from which a workload runs once and is judged in slices."""
_SLICE, _SLICES = 1 << 24, 16
"""Elements in a slice, and how many are judged: the first, the last, those where an index outgrows 31 or 32 bits, and
others spread over the rest. Whether every element was written is looked at everywhere."""
_ONE_AT_A_TIME = multiprocessing.get_context("fork").Lock()
"""Two huge workloads at once would not fit into memory."""
_LATE = {"values": 0, "buffers": 1, "bands": 0, "poison": 0, "late": True}
_OTHER_BANDS = tuple(
    {"values": 0, "buffers": 0, "bands": i % 2, "poison": 0, "late": False, "index": i} for i in range(4)
)
"""Nothing differs but the bytes around the tensors, and each answer is asked for twice."""


@dataclass(frozen=True)
class Outcome:
    finding: Finding | None = None
    errors: tuple[Errors, ...] = ()
    deterministic: bool = True
    controls: dict[str, bool] = field(default_factory=dict)
    seconds: tuple[float, ...] = ()
    beyond: dict[str, int] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    lost: bool = False
    """The worker is gone, or cannot be trusted any more."""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conditions:
    """What stays the same over the workloads of one kernel and dtype."""

    here: Availability
    plain: PlainTorch
    prior: Prior
    parameters: dict[str, Any]
    threads: int


def run(worker: Worker, kernel: Kernel, op: Op, workload: Workload, conditions: Conditions) -> Outcome:
    """Try one workload and say what was seen."""
    huge = op.elements(workload) > HUGE
    with _ONE_AT_A_TIME if huge else contextlib.nullcontext():
        return _run(worker, kernel, op, workload, conditions, huge)


def _run(worker: Worker, kernel: Kernel, op: Op, workload: Workload, conditions: Conditions, huge: bool) -> Outcome:
    here = conditions.here
    wanted = _RUNS[:1] if huge else (*_RUNS, _LATE) if here.device == "cuda" else _RUNS
    runs = [{**r, "index": i} for i, r in enumerate(wanted)]
    drawn = [drawing.generate(op, workload, v) for v in range(1 if huge else drawing.FRESH)]
    layout = Layout(kernel, op, workload, len(runs), len(drawn))
    memory = worker.memory(layout.total)
    for spec in layout.inputs:
        for at, values in zip(spec["at"], drawn, strict=True):
            value = values[spec["name"]]
            tensor(memory, at, value.dtype, spec["shape"]).copy_(value)
    ask = message(kernel, op, workload, layout, here.mode, conditions.parameters)
    ask |= {"do": "trial", "device": here.device, "runs": runs, "threads": conditions.threads}
    try:
        answer = worker.ask(ask, worker.limits.seconds * (10 if huge else 1))
    except WorkerLost as lost:
        said = f"; it last printed: {lost.output[-300:]}" if lost.output else ""
        return Outcome(Finding(lost.how, lost.detail + said), lost=True)
    if "error" in answer:
        return raised(answer["error"])
    done = answer["runs"]
    seconds = tuple(r["seconds"] for r in done)
    if error := done[-1].get("error"):
        return raised(error, seconds)
    if finding := _conduct(done):
        return Outcome(finding, seconds=seconds)
    results = [_outputs(layout, memory, i) for i in range(len(runs))]
    if finding := _unwritten(layout, results, runs):
        return Outcome(finding, seconds=seconds)
    if huge:
        return judged_in_slices(
            op, workload, drawn[0], results[0], conditions.prior, seconds, answer.get("artifacts", [])
        )
    if not _same(results[0], results[4]) and workload.values != "beyond":
        try:
            worker.ask(ask | {"runs": _OTHER_BANDS})
        except WorkerLost as lost:
            return Outcome(Finding(lost.how, lost.detail), lost=True)
        a, b, again_a, again_b = (_outputs(layout, memory, i) for i in range(4))
        if _same(a, again_a) and _same(b, again_b) and not _same(a, b):
            what = "the result depends on bytes outside the inputs: it changed with the guard bands"
            return Outcome(Finding("overread", what), seconds=seconds)
    return _judged(op, workload, drawn, results, conditions, seconds, answer.get("artifacts", []))


def raised(error: dict[str, Any], seconds: tuple[float, ...] = ()) -> Outcome:
    """An exception inside the worker. After a CUDA error the process's context is dead."""
    text = error["what"] or error["message"]
    words = text if error["ours"] else f"{error['type']}: {text}"
    detector = (
        "build"
        if error["type"] == "BuildError"
        else "launch"
        if "CUDA" in text or "cuda" in error["type"].lower()
        else "exception"
    )
    if error["type"] in ("SystemExit", "KeyboardInterrupt"):
        detector = "exit"
    where = f" at {error['where']}" if error["where"] else ""
    where += f"\n  → {error['fix']}" if error.get("fix") else ""
    return Outcome(
        Finding(detector, f"{_short(words)}{where}"), seconds=seconds, lost=detector in ("launch", "exit"), detail=error
    )


def _short(text: str, limit: int = 1500) -> str:
    return text if len(text) <= limit else text[:limit] + " …"


def _conduct(done: list[dict[str, Any]]) -> Finding | None:
    """What a kernel must not do, whatever it computes."""
    for run in done:
        if run["forks"]:
            return Finding("fork", f"the kernel forked {run['forks']} process(es)")
        if run["returned"]:
            return Finding(
                "returned", f"the kernel returned {run['returned']}; results go into `out`, or declare returns=True"
            )
        if run["outside"]:
            return Finding("guard", f"it wrote outside its tensors: {run['outside'][0]}")
        if run["changed"]:
            return Finding("input", f"an input was changed: {run['changed'][0]}")
    return None


def _outputs(layout: Layout, memory: memoryview, index: int) -> dict[str, torch.Tensor]:
    return {
        s["name"]: tensor(memory, s["at"][index], dtype(s["dtype"]).torch, s["shape"]).clone() for s in layout.outputs
    }


def _bits(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value.contiguous().view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
    )


def _same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """Bit for bit, but for the bits inside a NaN, which mean nothing."""
    return all(bool(((_bits(a[n]) == _bits(b[n])) | (a[n].isnan() & b[n].isnan())).all()) for n in a)


def _unwritten(layout: Layout, results: list[dict[str, torch.Tensor]], runs: list[dict[str, Any]]) -> Finding | None:
    """An element that still holds its run's poison in every run was never written."""
    for spec in layout.outputs:
        if spec["alias"] or not math.prod(spec["shape"]):
            continue
        never = None
        width = dtype(spec["dtype"]).itemsize * 8
        for result, run in zip(results, runs, strict=True):
            poison = spec["poison"][run["poison"]]
            signed = poison - (1 << width) if width > 8 and poison >= 1 << (width - 1) else poison
            still = _bits(result[spec["name"]]).flatten() == signed
            never = still if never is None else never & still
        assert never is not None
        if count := int(never.sum()):
            total = never.numel()
            if count == total:
                return Finding(
                    "unwritten",
                    f"nothing was written to `{spec['name']}`: the kernel launched nothing, or wrote elsewhere",
                )
            first = int(never.nonzero()[0])
            return Finding(
                "unwritten", f"{count} of {total} elements of `{spec['name']}` were never written, first at {first}"
            )
    return None


def slices(length: int, step: int, row: int) -> list[int]:
    """Where the judged slices of `step` begin, the last first: an index that overflows shows there. A step along the
    axis is `row` elements of the largest tensor."""
    total = -(-length // step)
    chosen = {0, total - 1} | {(b // row - o) // step for b in (1 << 31, 1 << 32) if b < length * row for o in (0, 1)}
    spread = min(total, _SLICES)
    for i in range(spread):
        if len(chosen) >= spread:
            break
        chosen.add(i * total // spread)
    return [i * step for i in sorted(chosen, reverse=True)]


def judged_in_slices(
    op: Op,
    workload: Workload,
    drawn: dict[str, torch.Tensor],
    result: dict[str, torch.Tensor],
    prior: Prior,
    seconds: tuple[float, ...] = (),
    artifacts: list[dict[str, Any]] | None = None,
    size: int = _SLICE,
) -> Outcome:
    """A float64 oracle of the whole would fit neither into memory nor into patience: judge slices of so many elements
    along the axis of independent results."""
    if not op.independent:
        raise UsageError(
            f"{op.name} has no independent axis to judge so large a workload along", fix="choose fewer elements"
        )
    import torch

    torch.set_num_threads(max(torch.get_num_threads(), (os.cpu_count() or 2) // 2))
    length = int(workload.named[op.independent])
    step = max(1, size // max(1, op.elements(workload) // length))
    row = max(v.numel() for v in (*drawn.values(), *result.values())) // length
    errors: list[Errors] = []
    for start in slices(length, step, row):
        part = slice(start, start + step)
        inputs = {n: v[part] if op.inputs[n].shape[:1] == (op.independent,) else v for n, v in drawn.items()}
        outputs = {n: v[part] if op.outputs[n].shape[:1] == (op.independent,) else v for n, v in result.items()}
        verdict = judge_maximum(outputs, oracle(op, workload, inputs), prior)
        errors += verdict.errors
        if verdict.finding:
            what = f"{verdict.finding.what} (in the slice of {op.independent} from {start})"
            return Outcome(Finding(verdict.finding.detector, what), tuple(errors), seconds=seconds)
    worst = max(errors, key=lambda e: e.share, default=None)
    return Outcome(None, (worst,) if worst else (), seconds=seconds, artifacts=artifacts or [])


def _judged(
    op: Op,
    workload: Workload,
    drawn: list[dict[str, torch.Tensor]],
    results: list[dict[str, torch.Tensor]],
    conditions: Conditions,
    seconds: tuple[float, ...],
    artifacts: list[dict[str, Any]],
) -> Outcome:
    first, again, elsewhere = results[0], results[3], results[4]
    deterministic = _same(first, again) and _same(first, elsewhere)
    truths: list[Oracle] = [oracle(op, workload, d) for d in drawn]
    if workload.values == "beyond":
        return Outcome(
            beyond=beyond(first, truths[0]), deterministic=deterministic, seconds=seconds, artifacts=artifacts
        )
    prior = conditions.prior
    plains = conditions.plain.outputs(op, workload, drawn, conditions.here.device)
    errors: list[Errors] = []
    controls: dict[str, bool] = {}
    for index, (result, truth, theirs) in enumerate(zip(results[:3], truths, plains, strict=True)):
        verdict = judge(result, truth, theirs, prior, controls=index == 0)
        if verdict.finding:
            finding = verdict.finding
            if index and not judge(results[0], truths[0], plains[0], prior).finding and _same(result, first):
                finding = Finding("stale", "given fresh values, the kernel answered with its first result again")
            return Outcome(finding, verdict.errors, deterministic, seconds=seconds)
        errors += verdict.errors
        controls |= {k: v or controls.get(k, False) for k, v in verdict.controls.items()}
    if not deterministic:
        for result in (again, elsewhere):
            if finding2 := judge(result, truths[0], plains[0], prior).finding:
                return Outcome(
                    Finding("unstable", f"the same values at another address gave a wrong result: {finding2.what}"),
                    seconds=seconds,
                )
    if len(results) > 5 and not _same(first, results[5]) and judge(results[5], truths[0], plains[0], prior).finding:
        return Outcome(
            Finding(
                "stream", "inputs that arrive on the current stream were not waited for: it runs on another stream"
            ),
            seconds=seconds,
        )
    return Outcome(None, tuple(errors), deterministic, controls, seconds, artifacts=artifacts)
