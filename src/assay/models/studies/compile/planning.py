"""The options of `assay model compile`, and the resulting cases: a model at one or several batch sizes, compiled in one
way from one state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from assay.errors import UsageError
from assay.models.studies import study
from assay.models.subject.registry import entry

STATES = {
    "cold": "a new process, its cache folders empty",
    "disk": "a new process, its cache folders as a cold one left them",
    "warm": "a process that has compiled the model before",
    "sweep": "one process that meets every batch size in turn, its cache folders empty at first",
}
MODES = ("default", "reduce-overhead", "max-autotune")
SHAPES = {None: "auto", False: "static", True: "dynamic"}
"""Names of torch.compile's `dynamic`; by default (None) a size that changed once is dynamic from then on."""
FIRST = 4
"""Calls timed one by one: with CUDA graphs the second warms up and the third records, so the first call is not the
whole cost."""
_USUAL = {"mode": "default", "shapes": "auto", "backend": "inductor"}


@dataclass(frozen=True, kw_only=True)
class Effort(study.Effort):
    budget: float = 4.0
    """Seconds of steady calls, for each of eager and compiled."""
    calls: int = 1000
    """Number of calls up to which the curve is measured, if the budget allows."""
    limit: int = 0
    """Times one function may be compiled before torch gives up and runs it eagerly; 0: torch's default."""


@dataclass(frozen=True, kw_only=True)
class Options(study.Options):
    batches: tuple[int, ...] = (64,)
    states: tuple[str, ...] = tuple(STATES)
    """`sweep` needs more than one batch size."""
    modes: tuple[str, ...] = ("default",)
    dynamic: bool | None = None
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True)
class Case:
    model: str
    batches: tuple[int, ...]
    dtype: str
    device: str
    state: str
    mode: str = "default"
    dynamic: bool | None = None
    backend: str = "inductor"
    """Of torch.compile. Others show what its layers cost: `eager` is dynamo alone, `aot_eager` adds AOTAutograd."""

    def at(self, state: str) -> Case:
        return replace(self, state=state)

    @property
    def sizes(self) -> str:
        return "+".join(map(str, self.batches))

    def __str__(self) -> str:
        several = f"batches={self.sizes}" if self.state == "sweep" else f"batch={self.sizes}"
        more = {"mode": self.mode, "shapes": SHAPES[self.dynamic], "backend": self.backend}
        unusual = "".join(f",{k}={v}" for k, v in more.items() if v != _USUAL[k])
        return f"compile,{several},dtype={self.dtype},device={self.device},state={self.state}{unusual}"

    def replay(self, limit: int = 0) -> str:
        words = [f"assay model compile {self.model} --batch {self.sizes.replace('+', ',')} --dtype {self.dtype}"]
        words.append(f"--device {self.device} --state {self.state}")
        words += [f"--mode {self.mode}"] * (self.mode != "default")
        words += [f"--{SHAPES[self.dynamic]}"] * (self.dynamic is not None)
        words += [f"--backend {self.backend}"] * (self.backend != "inductor")
        return " ".join(words + [f"--recompile-limit {limit}"] * bool(limit))


Plan = tuple[Case, ...]
"""States that share their caches, in order of execution."""


def plan(model: str, options: Options) -> list[Plan]:
    """Return a plan for each batch size and mode, and for each mode one more for the sweep over all sizes."""
    number = options.number(entry(model))
    study.verify("state", options.states, STATES)
    study.verify("mode", options.modes, MODES)
    device = study.device(options.device)
    plans: list[Plan] = []
    for mode in options.modes:
        every = Case(model, options.batches, number, device, "sweep", mode, options.dynamic, options.backend)
        states = [s for s in STATES if s in options.states and s != "sweep"]
        for batch in options.batches if states else ():
            plans.append(tuple(replace(every, batches=(batch,), state=state) for state in states))
        if "sweep" in options.states and len(options.batches) > 1:
            plans.append((every,))
    if not plans:
        raise UsageError("a sweep is over more than one batch size", fix="--batch 1,16,64")
    return plans
