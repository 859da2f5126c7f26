"""The process itself: it scouts a model, or measures one variant of it. Run as a module, by assay.worker.fresh."""

from __future__ import annotations

from typing import Any

import torch

from assay.errors import AssayError, SourceError, UsageError
from assay.models.studies.infer.pairing import VARIANT, Pairing, about, pairing
from assay.models.studies.infer.scouting import scout
from assay.worker.fresh import Tick, serve

_made: dict[str, Pairing] = {}
"""What `prepare` made, for the questions after it."""
_BOUNDARY_BUDGET = 0.2


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    with torch.no_grad():
        if question["do"] == "scout":
            return _or_cannot(lambda: scout(question, tick))
        if question["do"] == "prepare":
            return _or_cannot(lambda: _prepare(question, tick))
        made = _made["variant"]
        with made.subject.entry.guarded():
            return _DO[question["do"]](made, question, tick)


def _or_cannot(make: Any) -> dict[str, Any]:
    """What a model needs and is not here is no failure of it."""
    try:
        made: dict[str, Any] = make()
        return made
    except (UsageError, SourceError):
        raise
    except AssayError as problem:
        return {"cannot": str(problem)}


def _prepare(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    made = _made["variant"] = pairing(question, tick)
    return about(made) | {"sites": {str(b): made.sites(b) for b in question["batches"]}, "swap": _swap(made)}


def _swap(made: Pairing) -> list[dict[str, Any]]:
    """What became of every site, as the swap's own report has it."""
    return [] if made.report is None else [s | {"state": str(s["state"])} for s in made.report.to_dict()["sites"]]


def _measure(made: Pairing, question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    found = made.measure(question["arms"], question["batch"], question["timed"], tick)
    return found | {"swap": _swap(made)}


def _profile(made: Pairing, question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    return made.profile(question["arms"], question["batch"], tick)


def _boundary(made: Pairing, question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """What each call costs beyond the kernel itself, for every kernel that runs in the model."""
    from assay.models.swap.boundary import boundary_cost

    found: dict[str, Any] = {}
    for kernel, named in question["kernels"].items():
        tick(f"what a call of {kernel} costs")
        try:
            cost = boundary_cost(named, device=made.device, budget=_BOUNDARY_BUDGET)
            kept = ("workload", "direct", "operator", "site", "training", "gradient")
            found[kernel] = {n: getattr(cost, n) for n in kept}
        except Exception as error:
            found[kernel] = {"why": str(error).splitlines()[0]}
    return {"boundary": found}


def _score(made: Pairing, question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    tick("accuracy")
    model = made.models.get(VARIANT) or made.models["torch"]
    found = made.subject.entry.score(model, tell=tick)
    return {"score": found.to_dict() if found else None}


def _undo(made: Pairing, question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    if made.report is not None:
        made.report.undo()
    return {}


_DO = {"undo": _undo, "measure": _measure, "profile": _profile, "boundary": _boundary, "score": _score}


if __name__ == "__main__":
    serve(answer)
