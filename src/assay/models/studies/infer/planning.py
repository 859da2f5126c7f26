"""The options of `assay model infer`, and the plan made from them after a process has scouted the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.models.studies import study
from assay.models.studies.infer import sizes
from assay.models.studies.infer.variants import OWN, Variant, variants
from assay.models.studies.study import Child, Failure
from assay.models.subject.entry import Entry
from assay.models.subject.registry import entry
from assay.models.subject.subject import Setup
from assay.worker.fresh import Tick

CHILD = "assay.models.studies.infer.child"
ARMS = {
    "eager": "as written, one operator after the other",
    "compiled": "by torch.compile, the kernels inside its graph",
    "graphed": "captured once into a CUDA graph, and replayed",
}
BUDGET = {"cuda": 0.25, "cpu": 1.0}
"""Default seconds for each arm at each batch size."""


@dataclass(frozen=True, kw_only=True)
class Effort(study.Effort):
    """`budget` is for each arm at each batch size; a batch size of which one call takes longer is left out. 0: depends
    on the device."""

    passes: int = 5
    """Passes under the profiler; the median of each part is kept."""
    alone_budget: float = 1.0
    """Maximum seconds for each kernel and workload timed alone by `assay bench`; at most four times `budget`, so that a
    small budget shortens this part, too."""


@dataclass(frozen=True)
class Trained:
    """A recorded training of the model."""

    swap: Mapping[str, str]
    device: str
    seconds_per_epoch: float
    batch: int
    run: str


@dataclass(frozen=True, kw_only=True)
class Options(study.Options):
    batches: tuple[int, ...] = ()
    """Empty: of the usual batch sizes as many as fit into a stated time."""
    arms: tuple[str, ...] = tuple(ARMS)
    variants: tuple[str, ...] = ()
    """Names of variants; `all`: every one for which the model has sites. Empty: all of them, or with `swap` only the
    baseline and that."""
    swap: Mapping[str, str] = field(default_factory=dict)
    """The user's own variant: {"gelu": "gelu/triton"}."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the model: {"activation": "relu"}."""
    weights: Path | None = None
    """File of weights; None: trained or published ones on this machine, else random ones."""
    score: bool | None = None
    """Whether each variant's accuracy is measured; None: if the data is already on this machine."""
    alone: tuple[int, ...] | None = None
    """Batch sizes at which kernels are also timed alone; None: the smallest and the largest."""
    effort: Effort = field(default_factory=Effort)
    trained: tuple[Trained, ...] = ()
    """Recorded trainings of this model, newest last."""


@dataclass(frozen=True)
class Case:
    """One measurement: a variant in one arm at one batch size."""

    subject: Setup
    variant: str
    rules: Mapping[str, str]
    arm: str = ""
    batch: int = 0
    """0, with an empty arm, for a variant as a whole that cannot run here."""

    def __str__(self) -> str:
        about = {"variant": self.variant}
        about |= {"arm": self.arm, "batch": str(self.batch)} if self.arm else {}
        about |= dict(self.subject.options) | {"dtype": self.subject.dtype, "device": self.subject.device}
        return ",".join(["infer", *(f"{k}={v}" for k, v in about.items())])

    def about(self) -> dict[str, Any]:
        """Return the case as fields of the evidence."""
        own = {"variant": self.variant, "rules": dict(self.rules), "arm": self.arm, "batch": self.batch}
        return own | {"dtype": self.subject.dtype, "device": self.subject.device}

    def replay(self, own: Mapping[str, str], given: str) -> str:
        """Return the command that repeats it. `own`: the rules of --swap. `given`: the file of --weights."""
        words = ["assay model infer", self.subject.model]
        if self.variant == OWN:
            words += [f"--swap {shlex.quote(f'{k}={v}')}" for k, v in own.items()]
        words += ["--variant", self.variant]
        words += ["--arm", self.arm, "--batch", str(self.batch)] if self.arm else []
        words += [f"--{k} {v}" for k, v in self.subject.options.items()]
        words += ["--dtype", self.subject.dtype, "--device", self.subject.device]
        words += ["--weights", shlex.quote(given)] if given else []
        words += ["--seed", str(self.subject.seed)] if self.subject.seed else []
        return " ".join(words)


@dataclass(frozen=True)
class Plan:
    subject: Setup
    options: Options
    budget: float
    variants: tuple[Variant, ...] = ()
    ops: tuple[str, ...] = ()
    """Ops that the model calls, and pairs of them that can be fused."""
    batches: tuple[int, ...] = ()
    """Affordable batch sizes, smallest first."""
    too_long: Mapping[int, str] = field(default_factory=dict)
    left_out: str = ""
    """Which of the usual batch sizes are not run, why, and how to run them."""
    workloads: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    """Batch size → op and workload of every site."""
    cannot: str = ""
    """Why the model cannot be run here at all."""

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(a for a in ARMS if a in self.options.arms)

    @property
    def measurements(self) -> int:
        """Number of records to expect."""
        each = len(self.arms) * (len(self.batches) + len(self.too_long))
        return sum(1 if v.cannot or v.interpreted else each for v in self.variants) + bool(self.left_out) or 1

    @property
    def alone(self) -> tuple[int, ...]:
        """Batch sizes at which kernels are timed alone."""
        if self.options.alone is not None:
            return tuple(b for b in self.options.alone if b in self.batches)
        return tuple(dict.fromkeys((*self.batches[:1], *self.batches[-1:])))


def plan(model: str, options: Options | None = None, tick: Tick = lambda text: None) -> Plan:
    """Return the plan. Anything wrong with the request is raised here; the model is built and run in a separate
    process."""
    asked = options or Options()
    options = replace(asked, batches=asked.batches or sizes.USUAL)
    known = entry(model)
    study.verify("arm", options.arms, ARMS)
    number = options.number(known)
    if options.effort.rounds < 6:
        raise UsageError(f"{options.effort.rounds} rounds give no interval", fix="--rounds 6 or more")
    if OWN in options.variants and not options.swap:
        raise UsageError(f"the variant '{OWN}' is what --swap names", fix="--swap gelu=gelu/triton")
    if strange := sorted(set(options.alone or ()) - set(options.batches)):
        raise UsageError(f"--alone {strange[0]}: that batch size is not run", fix=f"--alone {max(options.batches)}")
    device = study.device(options.device)
    if device == "cpu" and options.arms and set(options.arms) <= {"graphed"}:
        raise UsageError("the arm 'graphed' needs a GPU: CUDA graphs are of a GPU", fix="--arm eager,compiled")
    subject = _subject(known, options, number, device)
    budget = options.effort.budget or BUDGET[device]
    # Wrong kernel names are found without the model.
    own = next((v for v in variants((), device, (OWN,), options.swap) if v.name == OWN), None) if options.swap else None
    try:
        seen = _scouted(subject, options, budget, own, tick)
    except Failure as failure:
        if failure.mistake:
            raise failure.mistake from None
        return Plan(subject, options, budget, cannot=str(failure))
    chosen = tuple(variants(seen["ops"], device, options.variants, options.swap))
    calls = {int(batch): seconds for batch, seconds in seen["calls"].items()}
    if asked.batches:
        run = sizes.named(calls, budget)
    else:
        models = sum(2 if variant.rules else 1 for variant in chosen if not (variant.cannot or variant.interpreted))
        arms = [arm for arm in options.arms if device == "cuda" or arm != "graphed"]
        run = sizes.usual(calls, budget, models * len(arms), sizes.SECONDS[device])
    return Plan(
        subject,
        options,
        budget,
        chosen,
        tuple(seen["ops"]),
        run.batches,
        run.too_long,
        run.left_out,
        {int(b): [(op, text) for op, text in sites] for b, sites in seen["workloads"].items()},
    )


def _subject(known: Entry, options: Options, number: str, device: str) -> Setup:
    chosen = known.chosen(options.options)
    file, source = options.weights, "given"
    if file is None:
        file = known.weights_here(**chosen)
        source = "trained" if file == known.weights_file(**chosen) else "published"
    elif not Path(file).is_file():
        raise UsageError(f"no file {file}", fix="name the weights of this model, or leave out --weights")
    place, source = (str(Path(file).resolve()), source) if file else ("", "seeded")
    unusual = known.unusual(chosen)
    effort = options.effort
    return Setup(known.name, number, device, effort.seed, effort.threads, unusual, place, source)


def _scouted(subject: Setup, options: Options, budget: float, own: Variant | None, tick: Tick) -> dict[str, Any]:
    rules = dict(own.rules) if own and not own.cannot and not own.interpreted else {}
    batches = sorted(set(options.batches))
    with Child(CHILD, {}, options.timeout, tick) as child:
        return child.ask(do="scout", subject=asdict(subject), batches=batches, budget=budget, own=rules)
