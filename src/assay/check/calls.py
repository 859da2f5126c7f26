"""Calls the kernel several times on one workload and examines all of its effects.

Every workload takes two calls, on the same values at two addresses with other guard contents. Some workloads, which a
kernel cannot predict, take five: on fresh values and on values with one changed element, in the same buffers; and on
the first values again at other addresses, the last time with other guard contents. A workload that is examined closely
takes up to three more, on values that differ in other ways. On a GPU there is also a call whose inputs arrive late on
the current stream, and some calls while the device is busy. A large workload takes one call.

All verdicts are made here, from the bytes themselves; the worker only calls the kernel (check.buffers)."""

from __future__ import annotations

import itertools
import math
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from assay import inputs as drawing
from assay.check import distribution, leftovers, runs, variations
from assay.check.buffers import Buffers, same
from assay.check.case import Case
from assay.check.explaining import circumstances, differs, explained, fenced_off, only_there
from assay.check.figures import Errors
from assay.check.judge import Finding, beyond
from assay.check.outcome import LEAST, Conditions, Outcome, raised
from assay.check.runs import Done, Run
from assay.check.slices import judged_in_slices
from assay.check.variations import Values, Variation
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.lazy import torch
from assay.worker import Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import Tried, Try
from assay.worker.request import Call
from assay.workload import Workload

_CLOSE = 1 << 21
"""The most elements of a workload that is examined closely: each further set of values costs an oracle."""
_CONTROLLED = 1 << 17
"""The most elements for which answers that must not pass are judged too: they test the judge, not the kernel."""
_MOST = 3
"""Further sets of values for a workload that is examined closely."""
_CLEARLY = 8.0
"""The multiple of the tolerance by which an answer to other values must be off, so that the judge must reject it."""
_PAIRS = 10
"""Pairs of calls in which a result must follow the bytes around the tensors; a race may seem to do so for a few."""
_AGAIN = 3
"""How often the call with late inputs must be wrong, and the same call after their arrival right, to blame a stream."""
_MOMENT = 0.25
"""Seconds to wait for a result that was missing when the call returned."""
_MASK_STORE = "\n  → give that store a mask or a condition"
_MASK_LOAD = (
    "\n  → give that load a mask (a block pointer: boundary_check), and a value for the masked lanes if a reduction "
    "includes them (other=, padding_option=): they are undefined without one"
)
_trials = itertools.count()


class Trial:
    def __init__(
        self,
        worker: Worker,
        kernel: Kernel,
        workload: Workload,
        conditions: Conditions,
        large: bool,
        prepared: Case | None = None,
    ) -> None:
        op = workload.op
        self.prepared = prepared
        self.worker, self.kernel, self.op, self.workload = worker, kernel, op, workload
        self.conditions, self.large = conditions, large
        # Not from the workload's seed: a kernel must not be able to predict these values.
        self.rng = random.Random(secrets.randbits(128))
        self.layout = Call.of(kernel, workload, conditions.here.mode, conditions.parameters)
        self.buffers = Buffers(self.layout, 1 if large and not op.random else 3, worker.memory)
        call = replace(self.layout, arena=self.buffers.total)
        self.ask = Try(call, conditions.here.device, next(_trials), self.buffers.places, self.buffers.copies)
        self.fence = ""
        """The side of the tensors on which memory is unmapped in all calls; empty: it depends on the place."""
        self.seconds: list[float] = []
        self.work = self.programs = 0
        self.artifacts: list[dict[str, Any]] = []
        self.compared: tuple[int, ...] = ()
        self.delayed = 0
        self.global_: dict[str, None] = {}
        """Descriptions of what was changed for the whole process."""
        self.late = ""
        self.cases: dict[int, Case] = {}
        """The cases seen so far, by the identity of their values."""
        self.last: dict[int, Done] = {}
        """The last call at each place."""

    def outcome(self) -> Outcome:
        cases = [self.prepared or Case.of(self.workload, self.layout, self.conditions)]
        if self.op.random:
            return self._with_global(self._random(cases))
        first = self._call(runs.FIRST, cases, [])  # a call that fails at once costs no oracle
        if isinstance(first, Outcome):
            if first.finding and first.finding.detector == "exception" and not self.large:
                _ = cases[0].truth  # raises if the reference does too: then the workload is not in the contract
            return self._with_global(first)
        done = [first]
        for one in self._planned(cases):
            called = self._call(one, cases, done)
            if isinstance(called, Outcome):
                return self._with_global(called)
            done.append(called)
        return self._with_global(self._looked_at(cases, done))

    def _planned(self, cases: list[Case]) -> list[Run]:
        """Return the calls after the first one and add their values to the cases."""
        here, threads = self.conditions.here, self.conditions.threads
        if self.large:
            return []
        if self.conditions.depth == "lean":
            return runs.lean(here.mode, self.rng)
        if self.conditions.depth == "delayed":
            cases.append(Case(self.workload, self.layout, self.conditions, drawing.generate(self.workload, 1)))
            cases[-1].change = "all values changed"
            return runs.delayed()
        for variation in self._varied(cases[0]):
            known = self.cases.get(id(variation.values))
            cases.append(known or Case(self.workload, self.layout, self.conditions, variation.values))
            cases[-1].change = variation.change
        return runs.planned(here.mode, here.device, threads, len(cases) - 3, self.rng)

    def _random(self, cases: list[Case]) -> Outcome:
        """Judge two draws with one seed, at two addresses, and one with another seed."""
        assert self.op.random is not None
        name = self.op.random.seed
        seed = dict(self.workload.attributes)[name]
        done: list[Done] = []
        for run, drawn in zip(runs.RANDOM, (seed, seed, seed + 1), strict=True):
            attributes = dict(self.workload.attributes) | {name: drawn}
            self.ask = replace(self.ask, call=replace(self.ask.call, attributes=attributes))
            called = self._call(run, cases, done)
            if isinstance(called, Outcome):
                return called
            done.append(called)
        finding = self._unwritten(done)
        for spec in self.layout.outputs[:1] if not finding else ():
            first, again, other = (d.result[spec.name] for d in done)
            values = cases[0].values
            finding = distribution.judge(self.workload, values, first, again, other, dtype(spec.dtype))
        return Outcome(finding, seconds=tuple(self.seconds), artifacts=self.artifacts)

    def _varied(self, first: Case) -> list[Variation]:
        """Return the other sets of values: one element changed, fresh ones, and more for a close examination."""
        workload, rng = self.workload, self.rng
        fresh = drawing.generate(workload, 1)
        again = Variation(drawing.generate(workload, 2), "all values changed")
        names = [s.name for s in self.layout.inputs if first.values[s.name].numel()]
        rng.shuffle(names)
        if not names or workload.values == "beyond":
            return [again, Variation(fresh, "all values changed")]

        def tells(values: Values) -> bool:
            tried = self.cases[id(values)] = Case(self.workload, self.layout, self.conditions, values)
            verdict = tried.judge(first.right, orders=False)
            if verdict.finding is None:
                return False
            share = verdict.errors[-1].share if verdict.errors else math.inf
            return verdict.finding.detector != "values" or share > _CLEARLY

        def one(name: str) -> Variation | None:
            return variations.one_element(workload, first.values, fresh, name, rng, tells)

        variants = [one(names[0]) or again, Variation(fresh, "all values changed")]
        if self.conditions.depth == "deep" and workload.elements <= _CLOSE:
            variants.append(variations.reordered(workload, first.values, rng))
            variants.append(variations.few_elements(workload, first.values, fresh, names[-1], rng))
            variants += [v for v in [one(names[1 % len(names)])] if v][: _MOST - 2]
        return variants

    def _call(self, one: Run, cases: list[Case], done: list[Done]) -> Done | Outcome:
        """Fill the buffers, call the kernel once, and check for forbidden effects."""
        case, buffers = cases[one.values], self.buffers
        self._look_again(one.place)
        held: dict[str, torch.Tensor] = {}
        for spec in self.layout.inputs:
            buffers.fill(spec.name, one.place, case.values[spec.name], one.bands)
        for spec in self.layout.outputs:
            if not spec.alias:
                name, number = spec.name, dtype(spec.dtype)
                other = done[0].result[name] if done else None
                right = (
                    case.right[name] if one.held == "shuffled" or (number.itemsize == 1 and not self.large) else None
                )
                first = done[0].held.get(name) if done else None
                held[name] = leftovers.before(one.held, spec.shape, number, self.rng, right, other, first)
                buffers.fill(name, one.place, held[name], one.bands)
        for spec in self.layout.scratch:
            contents = leftovers.before(one.held, spec.shape, dtype(spec.dtype), self.rng, None)
            buffers.fill(spec.name, one.place, contents, one.bands)
        threads = self.conditions.threads if one.threads == 0 else one.threads
        fence = self.fence or runs.FENCES.get(one.place, "")
        ask = replace(
            self.ask,
            place=one.place,
            first=not done,
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
        given = self._seconds()
        try:
            answer = self.worker.ask(ask, given)
        except Refused as refused:
            return only_there(one, fenced_off(raised(refused.failure, tuple(self.seconds)), fence))
        except WorkerLost as lost:
            if lost.blameless:
                raise
            output = f"; it last printed: {lost.output[-300:]}" if lost.output else ""
            hurried = lost.how == "timeout" and given is not None and given < self._usual_seconds
            ended = Finding(lost.how, lost.detail + output)
            return Outcome(ended, seconds=tuple(self.seconds), lost=True, hurried=hurried)
        self.seconds.append(answer.seconds)
        self.work, self.programs = self.work or answer.work, self.programs or answer.programs
        self.artifacts += map(dict, answer.artifacts)
        self.compared += tuple(answer.compared)
        self.delayed = answer.delayed
        self._note_global(answer)
        if finding := self._conduct(one, case, answer):
            return Outcome(finding, seconds=tuple(self.seconds))
        result = buffers.results()
        final = buffers.final(one.place) if self.conditions.here.device == "cuda" and not self.large else None
        self.last[one.place] = Done(one, result, held, final or result)
        self._look_again(one.place)
        return self.last[one.place]

    def _seconds(self) -> float | None:
        """Return the seconds of its own time that a call may take; None if the worker's limit applies."""
        if self.conditions.seconds is not None:
            return self.conditions.seconds
        if self.conditions.until is None:
            return self._usual_seconds if self.large else None
        return min(self._usual_seconds, max(LEAST, self.conditions.until - time.monotonic()))

    @property
    def _usual_seconds(self) -> float:
        return self.worker.limits.seconds * (10 if self.large else 1)

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

    def _look_again(self, place: int) -> None:
        """Record whether the last call at this place wrote to its outputs after it returned."""
        if place in self.last and not self.late:
            self.late = self.buffers.later(place, self.last[place].result)

    def _unwritten(self, done: list[Done]) -> Finding | None:
        what = leftovers.unwritten(self.layout.outputs, [(d.result, d.held) for d in done])
        return Finding("unwritten", what) if what else None

    def _wait_and_look(self) -> None:
        """Wait for a missing result and look again."""
        time.sleep(_MOMENT)
        for place in self.last:
            self._look_again(place)

    def _note_global(self, answer: Tried) -> None:
        for change in answer.settings:
            self.global_[
                f"{change.when} changed {change.name} from {change.before} to {change.after} for "
                f"the whole process; {change.instead}"
            ] = None
        if answer.replaced:
            names = ", ".join(answer.replaced[:3]) + (" and others" if len(answer.replaced) > 3 else "")
            self.global_[f"it replaced {names} for the whole process; call a function of your own instead"] = None

    def _with_global(self, outcome: Outcome) -> Outcome:
        """Add global changes to the outcome: as its finding, or to the finding it has, since they may be the cause."""
        outcome = replace(outcome, compared=self.compared, delayed=self.delayed, work=self.work, programs=self.programs)
        if not self.global_:
            return outcome
        words = "; ".join(list(self.global_)[:3])
        if outcome.finding is None:
            return replace(outcome, finding=Finding("global", words))
        finding = replace(outcome.finding, what=f"{outcome.finding.what}; besides, {words}")
        return replace(outcome, finding=finding)

    def _looked_at(self, cases: list[Case], done: list[Done]) -> Outcome:
        for place in self.last:
            self._look_again(place)
        seconds = tuple(self.seconds)
        if finding := self._ahead(cases, done):
            return Outcome(finding, seconds=seconds)
        if finding := self._unwritten(done):
            self._wait_and_look()
            return self._or_late(Outcome(finding, seconds=seconds))
        first = done[0].result
        if self.large and self.op.independent:
            return judged_in_slices(
                self.workload, cases[0].values, first, self.conditions.prior(), seconds, self.artifacts
            )
        elsewhere = next((d for d in done if d.run.place == runs.OTHER_BANDS), None)
        differs = elsewhere and not self.late and not same(first, elsewhere.result) and self.workload.values != "beyond"
        if differs and (found := self._follows_bands(cases, done)):
            return found
        outcome = self._judged(cases, done)
        if outcome.finding and outcome.finding.detector == "unwritten":
            self._wait_and_look()
        return self._or_late(outcome)

    def _again(self, cases: list[Case], done: list[Done]) -> Callable[[Run], Done | Outcome]:
        """Return a function that calls the kernel once more."""
        return lambda one: self._call(one, cases, done)

    def _follows_bands(self, cases: list[Case], done: list[Done]) -> Outcome | None:
        """Return an outcome if a wrong result changes with the bytes around the tensors, and only with them. Right
        results may follow them too: those of atomic additions did on a GPU, where timing decides their order."""
        seen: list[dict[str, torch.Tensor]] = []
        for i in range(2 * _PAIRS):
            called = self._call(Run(runs.USUAL, bands=i % 2, held="nan"), cases, done)
            if isinstance(called, Outcome):
                return called
            seen.append(called.result)
            if not same(seen[i], seen[i % 2]):
                return None
            if i == 1 and (same(*seen) or not any(cases[0].judge(result).finding for result in seen)):
                return None
        what = "the result depends on bytes outside the inputs: it changed with the guard bands"
        if strided := self.workload.strided:
            apart = " and of ".join(f"`{name}`" for name in strided)
            what += f" (here the rows of {apart} lie apart: each tensor has a stride of its own)"
        return Outcome(Finding("overread", what), seconds=tuple(self.seconds))

    def _ahead(self, cases: list[Case], done: list[Done]) -> Finding | None:
        """Return a finding if the kernel started before its inputs arrived: its final result with late inputs is wrong,
        while the result with the same inputs in time is right."""
        late = next((d for d in done if d.run.late), None)
        if late is None or self.workload.values == "beyond":
            return None
        alike = [d for d in done if (d.run.values, d.run.place) == (late.run.values, late.run.place)]
        in_time = next(d for d in alike if d is not late)
        if same(in_time.final, late.final) or cases[0].judge(in_time.final).finding:
            return None
        wrong = cases[0].judge(late.final).finding
        if not wrong:
            return None
        # A call on other values in between: stale values that a race reads are then not right by chance.
        between = [Run(runs.FRESH, late.run.place, held="nan")] if len(cases) > runs.FRESH else []
        arrived = replace(late.run, late="arrived")
        for one in (late.run, *between, arrived) * _AGAIN:
            again = self._call(one, cases, done)
            if isinstance(again, Outcome):
                return again.finding
            if one in between:
                continue
            wrong_again = bool(cases[0].judge(again.final).finding)
            if wrong_again != (one is late.run):  # a race, not the stream
                return differs(in_time.run, wrong)
        what = "inputs that arrive on the current stream were not waited for: it runs on another stream"
        return Finding("stream", what)

    def _or_late(self, outcome: Outcome) -> Outcome:
        """Return the outcome; its finding is lateness if the result changed after the call, since that explains the
        rest."""
        finding = outcome.finding
        if not self.late or (finding and finding.detector not in ("unwritten", "values", "nonfinite", "unstable")):
            return outcome
        what = f"the result went on changing after the call had returned: {self.late}; work was left in a thread, a "
        return replace(outcome, finding=Finding("late", what + "process or on a stream that the caller's ignores"))

    def _judged(self, cases: list[Case], done: list[Done]) -> Outcome:
        seconds, first = tuple(self.seconds), done[0].result
        deterministic = all(same(first, d.result) for d in done if d.run.values == runs.USUAL and not d.run.late)
        if self.workload.values == "beyond":
            seen = beyond(first, cases[0].truth)
            return Outcome(beyond=seen, deterministic=deterministic, seconds=seconds, artifacts=self.artifacts)
        errors: list[Errors] = []
        controls: dict[str, bool] = {}
        for index, case in enumerate(cases):
            call = next(d for d in done if d.run.values == index)
            small = self.workload.elements <= _CONTROLLED
            verdict = case.judge(call.result, controls=index == 0 and small)
            if verdict.finding:
                finding = explained(verdict.finding, cases, index, done, self._again(cases, done))
                vendor = case.plain.wrong
                return Outcome(finding, verdict.errors, deterministic, seconds=seconds, torch_wrong=vendor)
            errors += verdict.errors
            controls |= {k: v or controls.get(k, False) for k, v in verdict.controls.items()}
        for call in done[1:]:
            alike = next(d for d in done if d.run.values == call.run.values)
            if call is alike or call.run.late or same(alike.result, call.result):
                continue
            if wrong := cases[call.run.values].judge(call.result).finding:
                cause = circumstances(call.run, cases[0], self._again(cases, done))
                return Outcome(differs(cause, wrong), seconds=seconds, deterministic=deterministic)
        vendor = next((case.plain.wrong for case in cases if case.plain.wrong), "")
        return Outcome(
            None, tuple(errors), deterministic, controls, seconds, artifacts=self.artifacts, torch_wrong=vendor
        )


def once(
    worker: Worker, kernel: Kernel, workload: Workload, conditions: Conditions
) -> dict[str, torch.Tensor] | Outcome:
    """Return the unjudged outputs of one call, or its failure. On a GPU, memory after the tensors is unmapped."""
    trial = Trial(worker, kernel, workload, conditions, large=True)
    trial.fence = "behind"
    called = trial._call(runs.FIRST, [Case.of(trial.workload, trial.layout, trial.conditions)], [])
    return called if isinstance(called, Outcome) else called.result
