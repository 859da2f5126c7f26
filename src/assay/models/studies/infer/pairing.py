"""The plain model and the model with the kernels, timed in turn in every arm, in a variant's process."""

from __future__ import annotations

import contextlib
import copy
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from assay.models import measure
from assay.models.measure import Arm, Clock, WaitedClock, in_turn
from assay.models.packed.account import account
from assay.models.packed.linear import PackedLinear
from assay.models.studies import dynamo
from assay.models.studies.agreement import leaves
from assay.models.studies.infer import profiled
from assay.models.studies.infer.calls import calls
from assay.models.studies.infer.evidence import ENOUGH
from assay.models.studies.infer.planning import Effort
from assay.models.studies.infer.truth import Forward, Truth, suspect
from assay.models.subject.subject import Setup, Subject, load
from assay.models.swap import swap
from assay.models.swap.report import Report
from assay.worker.failure import describe, words
from assay.worker.fresh import Tick
from assay.worker.stopwatch import HostClock, NotCapturable

_WARM = 3
"""Calls before a capture: libraries choose their algorithms and allocate work space in the first calls."""
PLAIN, VARIANT = "torch", "variant"
Call = Callable[[], Any]


@dataclass(frozen=True)
class Captured:
    replay: Call
    """Replays the graph and returns the captured output tensors, with new contents."""
    bytes: int
    """Peak bytes that the capture held beyond those held before it; the graph keeps them as long as it lives."""


def captured(call: Call) -> Captured:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            out = call()
        graph.replay()
        torch.cuda.synchronize()
    except Exception as error:
        said = str(error).strip() or type(error).__name__
        raise NotCapturable(f"it cannot be captured into a CUDA graph: {said.splitlines()[0]}") from None

    def replay() -> Any:
        graph.replay()
        return out

    return Captured(replay, int(torch.cuda.max_memory_allocated() - before))


class Compiled:
    """A model under torch.compile, and the statistics of compiling it. As by default in torch, a batch size that
    changed once is dynamic from then on."""

    def __init__(self, model: nn.Module, backend: str) -> None:
        self.function = torch.compile(model, backend=backend)
        self.seconds, self.graphs, self.breaks = 0.0, 0, 0
        self.break_reasons = Counter[str]()

    def first(self, call: Call) -> None:
        """Make a call that may compile, and add it to the statistics."""
        before, reasons, began = dynamo.counts(), dynamo.break_reasons(), time.perf_counter()
        call()
        self.seconds += time.perf_counter() - began
        after = dynamo.counts()
        self.graphs += after["graphs"] - before["graphs"]
        self.breaks += after["breaks"] - before["breaks"]
        self.break_reasons += dynamo.break_reasons() - reasons

    def to_dict(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "function"}


Way = Call | Captured


@dataclass
class Pairing:
    subject: Subject
    models: dict[str, nn.Module]
    """The plain model and the one with the kernels; in the baseline's process only the plain one."""
    report: Report | None
    effort: Effort
    budget: float
    compiled: dict[str, Compiled]
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    """Arm → model → why it cannot be run."""

    @property
    def device(self) -> str:
        return self.subject.device

    def forward(self, arm: str, whose: str) -> Forward:
        """Return the function from inputs to outputs, eager or compiled."""
        if arm == "compiled":
            function = self.compiled[whose].function
            return lambda inputs: function(*inputs[0], **inputs[1])
        model = self.models[whose]
        return lambda inputs: self.subject.entry.forward(model, inputs)

    def call(self, arm: str, whose: str, batch: int) -> Call:
        """Return a call with the same inputs every time."""
        forward, inputs = self.forward(arm, whose), self.subject.inputs(batch)
        return lambda: forward(inputs)

    def warm(self, batches: Sequence[int], tick: Tick) -> None:
        """Trigger all compilation: kernels for each size, graphs for each arm."""
        for batch in batches:
            for whose in self.models:
                tick(f"first calls, batch {batch}")
                self.call("eager", whose, batch)()
                if whose in self.compiled and whose not in self.failures.get("compiled", {}):
                    tick(f"compiling, batch {batch}")
                    try:
                        self.compiled[whose].first(self.call("compiled", whose, batch))
                    except Exception as error:
                        why = f"{type(error).__name__}: {words(error)}".splitlines()[0]
                        self.failures.setdefault("compiled", {})[whose] = why

    def calls_of(self, arm: str, batch: int) -> dict[str, Way]:
        """Return, for each model, how to call it in this arm; empty if one of them cannot run in it."""
        if self.failures.get(arm):
            return {}
        if arm == "graphed":
            return {whose: captured(self.call("eager", whose, batch)) for whose in self.models}
        return {whose: self.call(arm, whose, batch) for whose in self.models}

    def sites(self, batch: int) -> list[dict[str, Any]]:
        """Return where kernels run, and on which workloads."""
        if self.report is None:
            return []
        return [asdict(c) for c in calls(self.models[VARIANT], self.call("eager", VARIANT, batch), self.report)]

    def measure(self, arms: Sequence[str], batch: int, timed: bool, tick: Tick) -> dict[str, Any]:
        """Measure outputs, memory and times of all arms, timed in the same rounds."""
        tick(f"batch {batch}: float64")
        truth = Truth(self.subject, batch, ENOUGH if timed else 1)
        answers: dict[str, dict[str, Any]] = {arm: {"outputs": {}} for arm in arms}
        ready: dict[str, Way] = {}
        for arm, answer in answers.items():
            tick(f"batch {batch}: {arm}")
            try:
                ways = self.calls_of(arm, batch)
                for whose, way in ways.items():
                    answer["outputs"][whose] = self._judged(truth, arm, whose, way)
                ready |= {f"{arm}/{whose}": way for whose, way in ways.items()}
            except Exception as error:
                answer["failure"] = describe(error)
        off = answers.get("eager", {}).get("outputs", {}).get(VARIANT)
        if off and off["share"] > 1:
            models = self.models[PLAIN], self.models[VARIANT]
            answers["eager"]["suspect"] = suspect(self.subject.entry, *models, truth.inputs)
        if timed and ready:
            tick(f"batch {batch}: timing all in turn")
            clock: Clock = WaitedClock(each=True) if self.device == "cuda" else HostClock()
            self._time(ready, clock, "samples", answers)
            if self.device == "cuda":  # on a CPU no call runs ahead
                self._time(ready, WaitedClock(), "streamed", answers)
            for name, way in ready.items():
                arm, _, whose = name.partition("/")
                held = way.bytes if isinstance(way, Captured) else measure.peak(way, self.device)
                answers[arm].setdefault("call_bytes", {})[whose] = held
                answers[arm]["method"] = clock.method
        return {"arms": answers}

    def _judged(self, truth: Truth, arm: str, whose: str, way: Way) -> dict[str, Any]:
        if isinstance(way, Captured):
            # A graph always reads the captured inputs. If its bits are not those of eager, it is judged by itself.
            replayed, first = leaves(way.replay()), leaves(self.forward("eager", whose)(truth.inputs[0]))
            if not all(map(torch.equal, replayed, first)):
                return truth.judge([replayed])
            arm = "eager"
        return truth.judge(truth.outputs(self.forward(arm, whose)))

    def _time(self, ready: Mapping[str, Way], clock: Clock, into: str, answers: dict[str, dict[str, Any]]) -> None:
        arms = [Arm(name, _call(way)) for name, way in ready.items()]
        for name, samples in in_turn(arms, clock, self.effort.rounds, self.budget).samples.items():
            arm, _, whose = name.partition("/")
            answers[arm].setdefault(into, {})[whose] = samples

    def profile(self, arms: Sequence[str], batch: int, tick: Tick) -> dict[str, Any]:
        """Return the time of each module and site in the eager arm, for both models, and on a GPU its busy time in each
        arm."""
        tick(f"batch {batch}: profiling")
        ways = {whose: (model, self.call("eager", whose, batch)) for whose, model in self.models.items()}
        taken = profiled.passes(ways, self.effort.passes, self.device)
        if self.device != "cuda":
            return {"profile": taken, "busy": {}}
        busy = {"eager": {whose: one["total"] for whose, one in taken.items()}}
        for arm in arms:
            if arm != "eager" and not self.failures.get(arm):
                with contextlib.suppress(NotCapturable):  # already reported by `measure`
                    calls = self.calls_of(arm, batch)
                    busy[arm] = {whose: profiled.busy(_call(way), self.effort.passes) for whose, way in calls.items()}
        return {"profile": taken, "busy": busy}


def _call(way: Way) -> Call:
    return way.replay if isinstance(way, Captured) else way


def pairing(question: Mapping[str, Any], tick: Tick) -> Pairing:
    """Build the model twice, swap kernels into one of them, and warm up both."""
    tick("building the model")
    subject = load(Setup(**question["subject"]))
    models = {PLAIN: subject.model}
    report: Report | None = None
    if question["rules"]:
        models[VARIANT] = copy.deepcopy(subject.model)
        report = swap(models[VARIANT], question["rules"])
    compiled: dict[str, Compiled] = {}
    if "compiled" in question["arms"]:
        dynamo.strict()
        compiled = {whose: Compiled(model, question["backend"]) for whose, model in models.items()}
    effort = Effort(**question["effort"])
    made = Pairing(subject, models, report, effort, question["budget"], compiled)
    made.warm(question["batches"], tick)
    if "graphed" in question["arms"]:
        tick("capturing a graph")
        for whose in models:
            try:
                captured(made.call("eager", whose, min(question["batches"])))
            except NotCapturable as refusal:
                made.failures["graphed"] = {whose: refusal.what}
                break
    return made


def _packed(made: Pairing) -> dict[str, Any] | None:
    """Return the account of the weights that the swap packed, or None if there are none."""
    model = made.models.get(VARIANT)
    if model is None or not any(isinstance(m, PackedLinear) for m in model.modules()):
        return None
    return asdict(account(model, made.report))


def _size(model: nn.Module) -> int:
    """Return the bytes of the model's parameters and buffers, each counted once."""
    tensors = {t.data_ptr() or id(t): t for t in (*model.parameters(), *model.buffers())}
    return sum(t.nbytes for t in tensors.values())


def about(made: Pairing) -> dict[str, Any]:
    """Return the facts that hold for all batch sizes."""
    return {
        "weights": made.subject.weights,
        "model_bytes": {whose: _size(model) for whose, model in made.models.items()},
        "parameter_count": sum(p.numel() for p in made.models[PLAIN].parameters()),
        "threads": torch.get_num_threads() if made.device == "cpu" else None,
        "memory_how": {
            "cuda": "weights, and the peak of PyTorch's CUDA allocator above what was there before a call",
            "cpu": "weights, and the peak of PyTorch's CPU allocator during a call",
        }[made.device],
        "tf32": torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32,
        "packed": _packed(made),
        "failures": made.failures,
        "compile": {whose: one.to_dict() for whose, one in made.compiled.items()},
    }
