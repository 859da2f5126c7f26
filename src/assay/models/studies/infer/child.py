"""The process that scouts a model, or measures one variant of it. It is run as a module by assay.worker.fresh."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from assay.errors import UsageError
from assay.models.packed.packing import kernel_of, packing
from assay.models.studies.infer import unswapped
from assay.models.studies.infer.calls import calls
from assay.models.studies.infer.pairing import VARIANT, Pairing, about, pairing
from assay.models.subject.subject import Setup, Subject, load
from assay.models.swap import swap
from assay.models.swap.boundary import boundary_cost
from assay.models.swap.plan import Plan
from assay.models.swap.report import Entry, Site
from assay.models.swap.rules import CALLED, FUSIONS
from assay.worker.fresh import Tick, serve

_made: dict[str, Pairing] = {}
"""The pairing made by `prepare`, for later questions."""
_BOUNDARY_BUDGET = 0.2

Question = dict[str, Any]
Answer = dict[str, Any]


def answer(question: Question, tick: Tick) -> Answer:
    with torch.no_grad():
        if question["do"] == "scout":
            return scout(question, tick)
        if question["do"] == "prepare":
            return _prepare(question, tick)
        made = _made["variant"]
        with made.subject.entry.guarded():
            return _DO[question["do"]](made, question, tick)


# Before anything is measured: the ops of the model's sites, their workloads, and the affordable batch sizes.


def scout(question: Question, tick: Tick) -> Answer:
    """Return `ops`: those with a site that ran; `calls`: batch → seconds of one call; `workloads`: batch → [op,
    workload], for batch sizes of which one call fits the budget. PyTorch's own kernels are swapped in, because sites
    and workloads do not depend on the kernel."""
    tick("building the model")
    subject = load(Setup(**question["subject"]))
    planned: list[Entry] = []
    if question["own"]:
        with subject.entry.guarded():
            planned = Plan(copy.deepcopy(subject.model), question["own"]).entries  # raises first if a rule does not fit
    seconds = _calls(subject, question["batches"], question["budget"], tick)
    batches = [batch for batch, one in seconds.items() if one <= question["budget"]]
    workloads: dict[str, dict[tuple[str, str], None]] = {str(b): {} for b in batches}
    ops: dict[str, None] = {}
    for rules in (*_rules(subject.model), *_packed(question["own"])):
        model = copy.deepcopy(subject.model)
        with subject.entry.guarded(), swap(model, rules) as report:
            for batch in batches:
                tick(f"which sites are there, batch {batch}")
                inputs = subject.inputs(batch)
                for site in calls(model, lambda m=model, i=inputs: subject.entry.forward(m, i), report):  # type: ignore[misc]
                    ops[site.op] = None
                    op = site.kernel.partition("/")[0]
                    workloads[str(batch)] |= {(op, text): None for text in site.workloads}
    if question["own"] and (idle := _idle(subject, planned, batches)) is not None:
        raise UsageError(unswapped.why(idle, question["own"]), fix=unswapped.instead(ops))
    return {
        "ops": list(ops),
        "workloads": {batch: list(map(list, pairs)) for batch, pairs in workloads.items()},
        "calls": {str(batch): one for batch, one in seconds.items()},
    }


def _calls(subject: Subject, batches: Sequence[int], budget: float, tick: Tick) -> dict[int, float]:
    """Return the seconds of one call by batch size. They are tried from small to large; those that would take more than
    twice the budget are estimated, assuming that the time is proportional to the batch size."""
    calls: dict[int, float] = {}
    last: tuple[int, float] | None = None
    for batch in sorted(batches):
        calls[batch] = last[1] * batch / last[0] if last else 0.0
        if calls[batch] <= 2 * budget:
            tick(f"one call, batch {batch}")
            calls[batch] = _once(subject, batch)
            last = batch, calls[batch]
    return calls


def _once(subject: Subject, batch: int) -> float:
    """Return the seconds of a second call."""
    inputs, began = subject.inputs(batch), 0.0
    with subject.entry.guarded():
        for _ in range(2):
            began = time.perf_counter()
            subject.entry.forward(subject.model, inputs)
            if subject.device == "cuda":
                torch.cuda.synchronize()
    return time.perf_counter() - began


def _rules(model: torch.nn.Module) -> list[dict[str, str]]:
    """Return one set of rules for all ops of which the model may have sites, and one for each fusion."""
    single = {op: f"{op}/torch" for op in CALLED if _matches(model, op, f"{op}/torch")}
    fused = [{k: f"{v}/torch"} for k, v in FUSIONS.items() if _matches(model, k, f"{v}/torch")]
    return [*([single] if single else []), *fused]


def _packed(own: Mapping[str, str]) -> list[dict[str, str]]:
    """Return rules for the linear layers that the user's rules pack; only packed ones have workloads."""
    rules = {
        key: f"{packed.format}/torch" if (packed := packing(value)) else f"{value.partition('/')[0]}/torch"
        for key, value in own.items()
        if kernel_of(value).partition("/")[0] in ("mx_linear", "int_linear")
    }
    return [rules] if rules else []


def _idle(subject: Subject, planned: Sequence[Entry], batches: Sequence[int]) -> list[Site] | None:
    """Return the planned sites if a kernel is called at none of them, else None. Functional calls are only known once
    the model runs, here with PyTorch's own kernels. A call that these do not take may be one for the user's kernel."""
    possible = [entry for entry in planned if not entry.left]
    rules = {entry.rule: f"{entry.op}/torch" for entry in possible if entry.form == "function"}
    if any(entry.form != "function" for entry in possible) or not all(
        _matches(subject.model, key, kernel) for key, kernel in rules.items()
    ):
        return None
    if not rules:
        return [entry.site() for entry in planned]
    if not batches:  # every call takes too long
        return None
    model = copy.deepcopy(subject.model)
    with subject.entry.guarded(), swap(model, rules) as report:
        for batch in batches:
            subject.entry.forward(model, subject.inputs(batch))
        return None if any(site.calls or site.fallbacks for site in report.sites) else list(report.sites)


def _matches(model: torch.nn.Module, key: str, kernel: str) -> bool:
    try:
        Plan(model, {key: kernel})
    except UsageError:
        return False
    return True


# One variant.


def _prepare(question: Question, tick: Tick) -> Answer:
    made = _made["variant"] = pairing(question, tick)
    sites = {str(b): made.sites(b) for b in question["batches"]}
    return about(made) | {"sites": sites, "swap": _swapped(made)}


def _measure(made: Pairing, question: Question, tick: Tick) -> Answer:
    """Measure one batch size, and report the state of every site."""
    measured = made.measure(question["arms"], question["batch"], question["timed"], tick)
    return measured | {"swap": _swapped(made)}


def _swapped(made: Pairing) -> list[dict[str, Any]]:
    return [asdict(site) for site in made.report.sites] if made.report else []


def _profile(made: Pairing, question: Question, tick: Tick) -> Answer:
    return made.profile(question["arms"], question["batch"], tick)


def _boundary(made: Pairing, question: Question, tick: Tick) -> Answer:
    """Measure what each call costs beyond the kernel itself, for every kernel that runs in the model."""
    costs: dict[str, Any] = {}
    for kernel, named in question["kernels"].items():
        tick(f"what a call of {kernel} costs")
        try:
            costs[kernel] = vars(boundary_cost(named, device=made.device, budget=_BOUNDARY_BUDGET)) | {"samples": None}
        except Exception as error:
            costs[kernel] = {"why": str(error).splitlines()[0]}
    return {"boundary": costs}


def _score(made: Pairing, question: Question, tick: Tick) -> Answer:
    tick("accuracy")
    model = made.models.get(VARIANT) or made.models["torch"]
    score = made.subject.entry.score(model, tell=tick)
    return {"score": asdict(score) if score else None}


def _undo(made: Pairing, question: Question, tick: Tick) -> Answer:
    if made.report is not None:
        made.report.undo()
    return {}


_DO = {"undo": _undo, "measure": _measure, "profile": _profile, "boundary": _boundary, "score": _score}


if __name__ == "__main__":
    serve(answer)
