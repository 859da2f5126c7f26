"""What follows from what a user set: a process looks at the model first, then the variants are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.dtype import dtype as format_called
from assay.errors import UsageError
from assay.models.studies.device import device as device_called
from assay.models.studies.infer.case import BASELINE, OWN, Setup
from assay.models.studies.infer.options import ARMS, BUDGET, Options
from assay.models.studies.infer.variants import Variant, variants
from assay.models.subject.registry import Entry, entry
from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused, Tick

CHILD = "assay.models.studies.infer.child"


@dataclass(frozen=True)
class Plan:
    subject: Setup
    options: Options
    budget: float
    variants: tuple[Variant, ...]
    batches: tuple[int, ...]
    """Those that are affordable, smallest first."""
    too_long: dict[int, str]
    workloads: dict[int, list[tuple[str, str]]]
    """Batch → the op and the workload of every site."""
    cannot: str = ""
    """Why the model cannot be run here at all."""

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(a for a in ARMS if a in self.options.arms)

    @property
    def measurements(self) -> int:
        """How many records will come."""
        each = len(self.arms) * (len(self.batches) + len(self.too_long))
        return sum(1 if v.cannot or v.interpreted else each for v in self.variants) or 1

    @property
    def alone(self) -> tuple[int, ...]:
        """Batch sizes at which kernels are timed alone."""
        if self.options.alone is not None:
            return tuple(b for b in self.options.alone if b in self.batches)
        return tuple(dict.fromkeys((*self.batches[:1], *self.batches[-1:])))


def plan(model: str, options: Options | None = None, tick: Tick = lambda text: None) -> Plan:
    """Everything wrong with the request is told here; the model is built and run in a process of its own."""
    options = options or Options()
    found = entry(model)
    for arm in options.arms:
        if arm not in ARMS:
            raise UsageError(f"no arm called '{arm}'", fix=f"--arm {','.join(ARMS)}")
    if not options.batches or min(options.batches) < 1:
        raise UsageError("a batch has at least one element", fix="--batch 1,16,64")
    if options.effort.rounds < 6:
        raise UsageError(f"{options.effort.rounds} rounds give no interval", fix="--rounds 6 or more")
    number = format_called(options.dtype).name
    if number not in found.dtypes or number == "fp64":  # float64 is what the others are held against
        fits = ", ".join(d for d in found.dtypes if d != "fp64")
        raise UsageError(f"{model} is not run in {number}", fix=f"--dtype with one of {fits}")
    if OWN in options.variants and not options.swap:
        raise UsageError(f"the variant '{OWN}' is what --swap names", fix="--swap gelu=gelu/triton")
    if strange := sorted(set(options.alone or ()) - set(options.batches)):
        raise UsageError(f"--alone {strange[0]}: that batch size is not run", fix=f"--alone {max(options.batches)}")
    device = device_called(options.device)
    subject = _subject(found, options, number, device)
    budget = options.effort.budget or BUDGET[device]
    # What is wrong with the names of kernels is known without looking at the model.
    own = next((v for v in variants((), device, (OWN,), options.swap) if v.name == OWN), None) if options.swap else None
    seen = _scouted(subject, options, budget, own, tick)
    if "cannot" in seen:
        return Plan(subject, options, budget, (), (), {}, {}, seen["cannot"])
    chosen = variants(seen["ops"], device, options.variants, options.swap)
    return Plan(
        subject,
        options,
        budget,
        tuple(chosen),
        tuple(seen["batches"]),
        {int(b): why for b, why in seen["too_long"].items()},
        {int(b): [(op, text) for op, text in found] for b, found in seen["workloads"].items()},
    )


def _subject(found: Entry, options: Options, number: str, device: str) -> Setup:
    chosen = found.chosen(options.options)
    file, source = options.weights, "given"
    if file is None:
        file = found.weights_here(**chosen)
        source = "trained" if file == found.weights_file(**chosen) else "published"
    elif not Path(file).is_file():
        raise UsageError(f"no file {file}", fix="name the weights of this model, or leave out --weights")
    place, source = (str(Path(file).resolve()), source) if file else ("", "seeded")
    unusual = {name: value for name, value in chosen.items() if value != found.options[name][0]}
    effort = options.effort
    return Setup(found.name, unusual, place, source, number, device, effort.seed, effort.threads)


def _scouted(subject: Setup, options: Options, budget: float, own: Variant | None, tick: Tick) -> dict[str, Any]:
    rules = dict(own.rules) if own and not own.cannot and not own.interpreted else {}
    question = {
        "do": "scout",
        "subject": subject.to_dict(),
        "batches": sorted(set(options.batches)),
        "budget": budget,
        "own": rules,
    }
    with Fresh(CHILD, {}) as process:
        try:
            return process.ask(question, options.timeout, lambda text: tick(f"{subject.model}: {text}"))
        except Refused as problem:
            if mistake := problem.wrong_use:
                raise mistake from None
            return {"cannot": str(problem)}
        except WorkerLost as lost:
            return {"cannot": f"{BASELINE}: {lost.detail}"}
