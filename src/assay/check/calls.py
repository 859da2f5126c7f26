"""Calls the kernel several times on one workload and examines all of its effects.

Every workload takes two calls, on the same values at two addresses with other guard contents. Some workloads, which a
kernel cannot predict, take five: on fresh values and on values with one changed element, in the same buffers; and on
the first values again at other addresses, the last time with other guard contents. A workload that is examined closely
takes up to three more, on values that differ in other ways. On a GPU there is also a call whose inputs arrive late on
the current stream, and some calls while the device is busy. A large workload takes one call.

Verdicts on the results are made here; each call's other effects are examined by check.caller."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from assay import inputs as drawing
from assay.check import distribution, leftovers, runs, variations
from assay.check.buffers import same
from assay.check.caller import Caller
from assay.check.case import Case
from assay.check.explaining import circumstances, differs, explained, with_inputs
from assay.check.figures import Errors
from assay.check.judge import Finding, beyond
from assay.check.outcome import Conditions, Outcome
from assay.check.runs import Done, Run
from assay.check.slices import judged_in_slices
from assay.check.variations import Values, Variation
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.lazy import torch
from assay.worker import Worker
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
        self.prepared, self.op, self.workload = prepared, workload.op, workload
        self.conditions, self.large = conditions, large
        places = 1 if large and not self.op.random else 3
        self.caller = Caller(worker, kernel, workload, conditions, large, places)
        self.layout, self.rng = self.caller.layout, self.caller.rng
        self.cases: dict[int, Case] = {}
        """The cases seen so far, by the identity of their values."""

    def outcome(self) -> Outcome:
        cases = [self.prepared or Case.of(self.workload, self.layout, self.conditions)]
        if self.op.random:
            return self.caller.with_effects(self._random(cases))
        first = self._call(runs.FIRST, cases, [])  # a call that fails at once costs no oracle
        if isinstance(first, Outcome):
            if first.finding and first.finding.detector == "exception" and not self.large:
                _ = cases[0].truth  # raises if the reference does too: then the workload is not in the contract
            return self.caller.with_effects(first)
        done = [first]
        for one in self._planned(cases):
            called = self._call(one, cases, done)
            if isinstance(called, Outcome):
                return self.caller.with_effects(called)
            done.append(called)
        return self.caller.with_effects(self._looked_at(cases, done))

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
            self.caller.change({name: drawn})
            called = self._call(run, cases, done)
            if isinstance(called, Outcome):
                return called
            done.append(called)
        finding = self._unwritten(done)
        for spec in self.layout.outputs[:1] if not finding else ():
            first, again, other = (d.result[spec.name] for d in done)
            values = cases[0].values
            finding = distribution.judge(self.workload, values, first, again, other, dtype(spec.dtype))
        return Outcome(finding, seconds=self.caller.seconds, artifacts=self.caller.artifacts)

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
        return self.caller.call(one, cases[one.values], done[0] if done else None)

    def _unwritten(self, done: list[Done]) -> Finding | None:
        calls, backend = [(d.result, d.held) for d in done], self.layout.kernel.address.backend
        what = leftovers.unwritten(self.layout.outputs, calls, backend)
        return Finding("unwritten", what) if what else None

    def _looked_at(self, cases: list[Case], done: list[Done]) -> Outcome:
        self.caller.look_again()
        seconds = self.caller.seconds
        if finding := self._ahead(cases, done):
            return Outcome(finding, seconds=seconds)
        if finding := self._unwritten(done):
            self.caller.wait_and_look()
            return self._or_late(Outcome(finding, seconds=seconds))
        first = done[0].result
        if self.large and self.op.independent:
            return judged_in_slices(
                self.workload, cases[0].values, first, self.conditions.prior(), seconds, self.caller.artifacts
            )
        elsewhere = next((d for d in done if d.run.place == runs.OTHER_BANDS), None)
        moved = elsewhere and not self.caller.late and not same(first, elsewhere.result)
        if moved and self.workload.values != "beyond" and (found := self._follows_bands(cases, done)):
            return found
        outcome = self._judged(cases, done)
        if outcome.finding and outcome.finding.detector == "unwritten":
            self.caller.wait_and_look()
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
        return Outcome(Finding("overread", what), seconds=self.caller.seconds)

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
        finding, late = outcome.finding, self.caller.late
        if not late or (finding and finding.detector not in ("unwritten", "values", "nonfinite", "unstable")):
            return outcome
        what = f"the result went on changing after the call had returned: {late}; work was left in a thread, a "
        return replace(outcome, finding=Finding("late", what + "process or on a stream that the caller's ignores"))

    def _judged(self, cases: list[Case], done: list[Done]) -> Outcome:
        seconds, first = self.caller.seconds, done[0].result
        deterministic = all(same(first, d.result) for d in done if d.run.values == runs.USUAL and not d.run.late)
        if self.workload.values == "beyond":
            seen = beyond(first, cases[0].truth)
            return Outcome(beyond=seen, deterministic=deterministic, seconds=seconds, artifacts=self.caller.artifacts)
        errors: list[Errors] = []
        controls: dict[str, bool] = {}
        for index, case in enumerate(cases):
            call = next(d for d in done if d.run.values == index)
            small = self.workload.elements <= _CONTROLLED
            verdict = case.judge(call.result, controls=index == 0 and small)
            if verdict.finding:
                finding = explained(verdict.finding, cases, index, done, self._again(cases, done))
                finding = with_inputs(finding, case.values)
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
            None, tuple(errors), deterministic, controls, seconds, artifacts=self.caller.artifacts, torch_wrong=vendor
        )
