"""Before anything is measured: what the model has sites of, on which workloads, and which batches are affordable.

The kernels of PyTorch itself are swapped in for that: sites and workloads are the same whoever computes them."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.errors import UsageError
from assay.models.studies.infer.calls import calls
from assay.models.studies.infer.loaded import load
from assay.models.swap import swap
from assay.models.swap.declared import CALLED, FUSIONS
from assay.models.swap.plan import Plan
from assay.worker.fresh import Tick


def scout(question: Mapping[str, Any], tick: Tick) -> dict[str, Any]:
    """`ops`: those with a site that ran. `workloads`: batch → [op, workload]. `too_long`: batch → why it is not run."""
    tick("building the model")
    subject, _ = load(question["subject"])
    if question["own"]:
        with subject.entry.guarded():
            Plan(copy.deepcopy(subject.model), question["own"])  # a rule that does not fit is told before all else
    batches, too_long = _affordable(subject, question["batches"], question["budget"], tick)
    workloads: dict[str, list[list[str]]] = {str(b): [] for b in batches}
    ops: dict[str, None] = {}
    for rules in (*_rules(subject.model), *_packed(question["own"])):
        model = copy.deepcopy(subject.model)
        with subject.entry.guarded(), swap(model, rules) as report:
            for batch in batches:
                tick(f"which sites are there, batch {batch}")
                inputs = subject.inputs(batch)
                for found in calls(model, lambda m=model, i=inputs: subject.entry.forward(m, i), report):  # type: ignore[misc]
                    ops[found.op] = None
                    workloads[str(batch)] += [[found.kernel.partition("/")[0], text] for text in found.workloads]
    unique = {batch: [list(pair) for pair in dict.fromkeys(map(tuple, found))] for batch, found in workloads.items()}
    return {"ops": list(ops), "workloads": unique, "batches": batches, "too_long": too_long}


def _affordable(subject: Any, batches: Sequence[int], budget: float, tick: Tick) -> tuple[list[int], dict[str, str]]:
    """From small to large: a call takes about as much longer as its batch is larger."""
    fits: list[int] = []
    too_long: dict[str, str] = {}
    last: tuple[int, float] | None = None
    for batch in sorted(batches):
        guess = last[1] * batch / last[0] if last else 0.0
        if guess <= 2 * budget:
            tick(f"one call, batch {batch}")
            guess = _once(subject, batch)
            last = batch, guess
        if guess <= budget:
            fits.append(batch)
        else:
            too_long[str(batch)] = f"one call takes about {guess:.3g} s, more than --budget {budget:g}"
    return fits, too_long


def _once(subject: Any, batch: int) -> float:
    inputs = subject.inputs(batch)
    with subject.entry.guarded():
        subject.entry.forward(subject.model, inputs)
        _wait(subject.device)
        began = time.perf_counter()
        subject.entry.forward(subject.model, inputs)
        _wait(subject.device)
    return time.perf_counter() - began


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _rules(model: torch.nn.Module) -> list[dict[str, str]]:
    """Every op that it may have sites of, and by itself every fusion."""
    single = {op: f"{op}/torch" for op in CALLED if _matches(model, op, f"{op}/torch")}
    fused = [{k: f"{v}/torch"} for k, v in FUSIONS.items() if _matches(model, k, f"{v}/torch")]
    return [*([single] if single else []), *fused]


def _packed(own: Mapping[str, str]) -> list[dict[str, str]]:
    """Linear layers have workloads only where a rule packs them."""
    rules = {key: "mx_linear/torch" for key, value in own.items() if value.partition("/")[0] == "mx_linear"}
    return [rules] if rules else []


def _matches(model: torch.nn.Module, key: str, kernel: str) -> bool:
    try:
        Plan(model, {key: kernel})
    except UsageError:
        return False
    return True
