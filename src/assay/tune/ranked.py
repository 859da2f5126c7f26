"""Tunes without running anything: configurations are compiled, pruned and ranked by the static model. None of them is
judged, so none passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from assay.record import Record, Status
from assay.store.tuned import shape_class
from assay.tune.estimate import model_for
from assay.tune.evidence import Choice, Static, TuneEvidence
from assay.tune.planning import Options, TunePlan
from assay.tune.pruning import Pruned, pruned
from assay.tune.space import Configuration, key, label
from assay.tune.static import Compiled, Compiler
from assay.units import duration
from assay.worker import Limits, Pool

_NAMED = 3
"""The most configurations with the same estimate that the reason names."""


def compile_all(
    planned: TunePlan, options: Options, tick: Callable[[str], None], device: str | None
) -> tuple[list[Compiled], Pruned]:
    """Compile the whole space on all cores and sort it out. `device` is the GPU that it is compiled for, if present."""
    assert planned.target is not None
    space, done = planned.space, count(1)

    def built(configuration: Configuration) -> None:
        tick(f"{planned.kernel} compiled {next(done)} of {len(space.configurations)}: {label(configuration)}")

    with Pool(Limits(options.seconds)) as pool:
        compiler = Compiler(planned.kernel, planned.workload, planned.target, pool, model_for(planned.target, device))
        compiled = compiler.compiled(space.configurations, built)
    return compiled, pruned(compiled, space.default)


def ranked(
    planned: TunePlan, options: Options, common: dict[str, Any], tick: Callable[[str], None]
) -> Iterator[Record]:
    """Yield a record per configuration in the order of the static model, then those left out, then the choice."""
    compiled, sorted_out = compile_all(planned, options, tick, None)
    target, space = str(planned.target), planned.space
    for place, one in enumerate(sorted_out.ordered, 1):
        evidence = TuneEvidence(parameters=one.configuration, target=target, place=place, static=one.static)
        reason = f"{label(one.configuration)}: {described(one.static)}"
        yield Record(status=Status.COMPILED, reason=reason, evidence=evidence.to_dict(), **common)
    yield from left_out(compiled, sorted_out, target, common)
    best = sorted_out.ordered[0] if sorted_out.ordered else None
    if best is None:
        reason = f"none of {len(space.configurations)} configurations can be launched on {target}"
        yield Record(status=Status.FAIL, reason=reason, evidence=TuneEvidence(target=target).to_dict(), **common)
        return
    estimate = best.static.estimate if best.static else None
    tied = [c.configuration for c in sorted_out.ordered if c.static and estimate and c.static.estimate == estimate]
    choice = Choice(
        winner=best.configuration,
        ties=tied[1:],
        default=space.default or None,
        strategy="static model",
        combinations=space.combinations,
        configurations=len(space.configurations),
        pruned=len(sorted_out.reasons),
        shape_class=shape_class(planned.workload),
    )
    counted = f"{len(sorted_out.ordered)} of {len(space.configurations)} configurations"
    reason = (
        f"{counted} ranked by the static model for {target}, {_first(choice)}; "
        f"nothing was run: {planned.here.reason or f'this machine is no {target}'}"
    )
    evidence = TuneEvidence(target=target, static=best.static, choice=choice)
    yield Record(status=Status.COMPILED, reason=reason, evidence=evidence.to_dict(), **common)


def _first(choice: Choice) -> str:
    """Describe the first configuration, and those that have the same estimate."""
    own = ", the default" * (choice.default == choice.winner)
    if not choice.ties:
        return f"the first is {label(choice.winner)}{own}"
    listed = "; ".join(map(label, [choice.winner, *choice.ties][:_NAMED]))
    more = len(choice.ties) + 1 - _NAMED
    others = f" and {more} more" if more > 0 else ""
    which = "the default" if own else "the first in the table"
    return f"{len(choice.ties) + 1} have the smallest estimate: {listed}{others}; recommended: {which}"


def left_out(
    compiled: list[Compiled], sorted_out: Pruned, target: str, common: dict[str, Any], device: str = ""
) -> Iterator[Record]:
    """Yield a record, with the reason, for each configuration that is not measured."""
    for one in compiled:
        this = key(one.configuration)
        if why := sorted_out.reasons.get(this):
            evidence = TuneEvidence(
                parameters=one.configuration,
                device=device,
                target=target,
                pruned=why,
                same_as=sorted_out.same_as.get(this),
                static=one.static,
            )
            reason = f"{label(one.configuration)}: {why}"
            yield Record(status=Status.SKIPPED, reason=reason, evidence=evidence.to_dict(), **common)


def described(static: Static | None) -> str:
    """Describe the figures of the code."""
    if static is None:
        return "nothing is known of its code"
    parts = [f"{static.registers} registers", f"{static.shared} B of shared memory"]
    parts += [f"{static.spills} B spilled"] if static.spills else []
    parts += [f"occupancy {static.occupancy:.0%}"] if static.occupancy is not None else []
    parts += [f"about {duration(static.estimate)} by the static model"] if static.estimate else []
    return ", ".join(parts)
