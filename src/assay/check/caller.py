"""Calls the kernel once, in buffers of its own, and examines the forbidden effects of the call.

What it finds comes from the bytes themselves; the worker only calls the kernel (check.buffers)."""

from __future__ import annotations

import itertools
import random
import secrets
import time
from dataclasses import replace
from typing import Any

from assay.check import leftovers, runs
from assay.check.buffers import Buffers
from assay.check.case import Case
from assay.check.explaining import empty, fenced_off, only_there
from assay.check.judge import Finding
from assay.check.outcome import LEAST, Conditions, Outcome, raised
from assay.check.runs import Done, Run
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.lazy import torch
from assay.worker import Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import Tried, Try
from assay.worker.request import Call
from assay.workload import Workload

_MOMENT = 0.25
"""Seconds to wait for a result that was missing when the call returned."""
_MASK_STORE = "\n  → give that store a mask or a condition"
_MASK_LOAD = (
    "\n  → give that load a mask (a block pointer: boundary_check), and a value for the masked lanes if a reduction "
    "includes them (other=, padding_option=): they are undefined without one"
)
_trials = itertools.count()


class Caller:
    """Calls one kernel on one workload, in one worker."""

    def __init__(
        self,
        worker: Worker,
        kernel: Kernel,
        workload: Workload,
        conditions: Conditions,
        large: bool,
        places: int = 1,
        fence: str = "",
    ) -> None:
        """`places`: at how many addresses calls may be made. `fence`: the side of the tensors on which memory is
        unmapped in all calls; empty: it depends on the place."""
        self.worker, self.conditions, self.large, self.fence = worker, conditions, large, fence
        self._workload = workload
        # Not from the workload's seed: a kernel must not be able to predict these values.
        self.rng = random.Random(secrets.randbits(128))
        self.layout = Call.of(kernel, workload, conditions.here.mode, conditions.parameters)
        self.buffers = Buffers(self.layout, places, worker.memory)
        call = replace(self.layout, arena=self.buffers.total)
        self.ask = Try(call, conditions.here.device, next(_trials), self.buffers.places, self.buffers.copies)
        self.spent: list[float] = []
        self.work = self.programs = 0
        self.artifacts: list[dict[str, Any]] = []
        self.compared: tuple[int, ...] = ()
        self.delayed = 0
        self.global_: dict[str, None] = {}
        """Descriptions of what was changed for the whole process."""
        self.late = ""
        self.last: dict[int, Done] = {}
        """The last call at each place."""

    @property
    def seconds(self) -> tuple[float, ...]:
        """The seconds of each call."""
        return tuple(self.spent)

    def change(self, attributes: dict[str, Any]) -> None:
        """Call with other values of attributes from now on."""
        attributes = dict(self.ask.call.attributes) | attributes
        self.ask = replace(self.ask, call=replace(self.ask.call, attributes=attributes))

    def call(self, one: Run, case: Case, first: Done | None) -> Done | Outcome:
        """Fill the buffers, call the kernel, and check for forbidden effects. `first`: the workload's first call, if
        this is another."""
        self.look_again(one.place)
        held = self._fill(one, case, first)
        threads = self.conditions.threads if one.threads == 0 else one.threads
        fence = self.fence or runs.FENCES.get(one.place, "")
        ask = replace(
            self.ask,
            place=one.place,
            first=first is None,
            threads=threads,
            programs=self.conditions.programs,
            fence=fence,
            order=one.order,
            busy=one.busy,
            load=one.load,
            late=one.late,
            thread=one.thread,
            shared=one.shared,
            delays=self.conditions.delays,
        )
        given = self._given()
        try:
            answer = self.worker.ask(ask, given)
        except Refused as refused:
            outcome = empty(raised(refused.failure, self.seconds), self._workload)
            return only_there(one, fenced_off(outcome, fence))
        except WorkerLost as lost:
            if lost.blameless:
                raise
            output = f"; it last printed: {lost.output[-300:]}" if lost.output else ""
            hurried = lost.how == "timeout" and given is not None and given < self._usual_seconds
            ended = Finding(lost.how, lost.detail + output)
            return Outcome(ended, seconds=self.seconds, lost=True, hurried=hurried)
        self._note(answer)
        if finding := self._conduct(one, case, answer):
            return Outcome(finding, seconds=self.seconds)
        result = self.buffers.results()
        on_gpu = self.conditions.here.device == "cuda"
        final = self.buffers.final(one.place) if on_gpu and not self.large else None
        self.last[one.place] = Done(one, result, held, final or result)
        self.look_again(one.place)
        return self.last[one.place]

    def look_again(self, place: int | None = None) -> None:
        """Record whether the last call at this place, or at any, wrote to its outputs after it returned."""
        for at in self.last if place is None else (place,):
            if at in self.last and not self.late:
                self.late = self.buffers.later(at, self.last[at].result)

    def wait_and_look(self) -> None:
        """Wait for a missing result and look again."""
        time.sleep(_MOMENT)
        self.look_again()

    def with_effects(self, outcome: Outcome) -> Outcome:
        """Add what the calls showed to the outcome. Global changes are its finding, or are added to the finding that it
        has, since they may be the cause."""
        outcome = replace(outcome, compared=self.compared, delayed=self.delayed, work=self.work, programs=self.programs)
        if not self.global_:
            return outcome
        words = "; ".join(list(self.global_)[:3])
        if outcome.finding is None:
            return replace(outcome, finding=Finding("global", words))
        finding = replace(outcome.finding, what=f"{outcome.finding.what}; besides, {words}")
        return replace(outcome, finding=finding)

    def _fill(self, one: Run, case: Case, first: Done | None) -> dict[str, torch.Tensor]:
        """Fill the buffers at the place of a call; return the contents of the outputs."""
        held: dict[str, torch.Tensor] = {}
        for spec in self.layout.inputs:
            self.buffers.fill(spec.name, one.place, case.values[spec.name], one.bands)
        for spec in self.layout.outputs:
            if not spec.alias:
                name, number = spec.name, dtype(spec.dtype)
                told = one.held == "shuffled" or (number.itemsize == 1 and not self.large)
                right = case.right[name] if told else None
                other, before = (first.result[name], first.held.get(name)) if first else (None, None)
                held[name] = leftovers.before(one.held, spec.shape, number, self.rng, right, other, before)
                self.buffers.fill(name, one.place, held[name], one.bands)
        for spec in self.layout.scratch:
            contents = leftovers.before(one.held, spec.shape, dtype(spec.dtype), self.rng, None)
            self.buffers.fill(spec.name, one.place, contents, one.bands)
        return held

    def _given(self) -> float | None:
        """Return the seconds of its own time that a call may take; None if the worker's limit applies."""
        if self.conditions.seconds is not None:
            return self.conditions.seconds
        if self.conditions.until is None:
            return self._usual_seconds if self.large else None
        return min(self._usual_seconds, max(LEAST, self.conditions.until - time.monotonic()))

    @property
    def _usual_seconds(self) -> float:
        return self.worker.limits.seconds * (10 if self.large else 1)

    def _note(self, answer: Tried) -> None:
        """Keep what the answer says besides the result."""
        self.spent.append(answer.seconds)
        self.work, self.programs = self.work or answer.work, self.programs or answer.programs
        self.artifacts += map(dict, answer.artifacts)
        self.compared += tuple(answer.compared)
        self.delayed = answer.delayed
        for change in answer.settings:
            self.global_[
                f"{change.when} changed {change.name} from {change.before} to {change.after} for "
                f"the whole process; {change.instead}"
            ] = None
        if answer.replaced:
            names = ", ".join(answer.replaced[:3]) + (" and others" if len(answer.replaced) > 3 else "")
            self.global_[f"it replaced {names} for the whole process; call a function of your own instead"] = None

    def _conduct(self, one: Run, case: Case, answer: Tried) -> Finding | None:
        """Return the first forbidden effect of a call, whatever it computed; None if there is none."""
        if answer.forks:
            return Finding("fork", f"the kernel forked {answer.forks} process(es)")
        if answer.alias:
            return Finding("alias", f"{answer.alias}: return a tensor that nothing else holds")
        if answer.returned:
            what = f"the kernel returned {answer.returned}; results go into `out`, or declare returns=True"
            return Finding("returned", what)
        if outside := self.buffers.outside(one.place, one.bands):
            return Finding("guard", f"it wrote outside its tensors: {outside}{_MASK_STORE}")
        if answer.read_outside:
            return Finding("overread", f"it reads outside its tensors: {answer.read_outside}{_MASK_LOAD}")
        if changed := self.buffers.changed(one.place, case.values):
            return Finding("input", f"an input was changed: {changed}")
        return None


def once(
    worker: Worker, kernel: Kernel, workload: Workload, conditions: Conditions
) -> dict[str, torch.Tensor] | Outcome:
    """Return the unjudged outputs of one call, or its failure. On a GPU, memory after the tensors is unmapped."""
    caller = Caller(worker, kernel, workload, conditions, large=True, fence="behind")
    called = caller.call(runs.FIRST, Case.of(workload, caller.layout, conditions), None)
    return called if isinstance(called, Outcome) else called.result
