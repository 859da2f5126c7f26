"""Tunes on a device: configurations are compiled and pruned, then checked and timed in batches that the strategy
proposes, and the best are timed again together."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

from assay.catalog.untuned import hash_without_space
from assay.check.plain import PlainTorch
from assay.machine.model import this_device
from assay.record import Record, Status
from assay.store.tuned import shape_class
from assay.tune.choosing import Winner, considered, decided, described, spread
from assay.tune.evidence import Choice, Static, TuneEvidence
from assay.tune.judging import Judge, Judged
from assay.tune.known import known
from assay.tune.planning import Options, TunePlan
from assay.tune.quiet import held_down
from assay.tune.ranked import compile_all, left_out
from assay.tune.space import Configuration, Key, key, label
from assay.tune.strategies import STRATEGIES, Problem, Strategy
from assay.tune.timing import Timing, method_of
from assay.units import duration
from assay.worker import Limits, Pool


class Measured:
    """Tunes one kernel on one workload."""

    def __init__(
        self, plan: TunePlan, options: Options, common: dict[str, Any], tick: Callable[[str], None] = lambda text: None
    ) -> None:
        self.plan, self.options, self.common, self.tick = plan, options, common, tick
        self.default = key(plan.space.default)
        self.source = hash_without_space(plan.kernel)
        self.configurations = {key(c): c for c in plan.space.configurations}
        self.static: dict[Key, tuple[int, Static | None]] = {}
        """Each configuration's place in the order of the static model, and its figures."""
        self.records: dict[Key, Record] = {}
        """The record of each configuration measured in this run or an earlier one."""
        self.taken = 0
        """How many records were taken from the store."""
        self.pruned = 0
        self.tunes_itself = True
        """Whether a kernel's first call may time variants of its own."""
        self.spent = {"compile": 0.0, "check": 0.0}
        """Seconds spent before timing, by stage."""
        self.began = time.perf_counter()

    def run(self) -> Iterator[Record]:
        """Yield a record for each configuration as soon as it is known, then the choice."""
        candidates = yield from self._candidates()
        stored = known(self.plan, self.options)
        strategy = self._strategy(candidates)
        for this, record in stored.records.items():
            if any(this == key(c) for c in candidates):
                self.records[this], self.taken = record, self.taken + 1
                strategy.tell(self.configurations[this], record.median if record.status is Status.PASS else None)
                yield record
        with Pool(Limits(self.options.seconds)) as pool:
            yield from self._measured(strategy, pool, stored.choice)

    def _measured(self, strategy: Strategy, pool: Pool, before: Record | None) -> Iterator[Record]:
        """Measure the configurations that the strategy proposes, then choose."""
        plain = PlainTorch(pool)
        judge = Judge(self.plan, self.options, pool, plain)
        with Timing(self.plan, self.options, pool, plain, self.tunes_itself) as timing:
            while batch := strategy.propose(strategy.batch):
                for record in self._batch(batch, judge, timing):
                    this = key(TuneEvidence.of(record).parameters or {})
                    self.records[this] = record
                    strategy.tell(self.configurations[this], self._seconds(record))
                    yield record
            yield self._choice(timing, before)

    def _candidates(self) -> Generator[Record, None, list[Configuration]]:
        """Compile and prune if there is a compiler. Yield the records of configurations left out, return the others."""
        space = self.plan.space
        if self.plan.target is None:
            return space.configurations
        began = time.perf_counter()
        compiled, sorted_out = compile_all(self.plan, self.options, self.tick, this_device("cuda"))
        self.tunes_itself = any(c.tunes_itself for c in compiled)
        self.spent["compile"] = time.perf_counter() - began
        target, device = str(self.plan.target), self.plan.here.device
        yield from left_out(compiled, sorted_out, target, self.common, device)
        self.pruned = len(sorted_out.reasons)
        self.static = {key(c.configuration): (at, c.static) for at, c in enumerate(sorted_out.ordered, 1)}
        return [c.configuration for c in sorted_out.ordered]

    def _strategy(self, candidates: list[Configuration]) -> Strategy:
        estimates = {k: s.estimate for k, (_, s) in self.static.items() if s and s.estimate}
        problem = Problem(self.plan.space, candidates, self.plan.most, estimates, self.options.seed)
        return STRATEGIES[self.plan.strategy](problem)

    def _batch(self, batch: list[Configuration], judge: Judge, timing: Timing) -> Iterator[Record]:
        """Check a batch, then time the right configurations in the same rounds."""
        verdicts: dict[Key, Judged] = {}
        began = time.perf_counter()
        for number, (this, verdict) in enumerate(judge.judged(batch), 1):
            verdicts[this] = verdict
            shown = label(self.configurations[this])
            self.tick(f"{self.plan.kernel} checked {number} of {len(batch)}: {shown}")
            if not verdict.right:
                yield self._refused(this, verdict)
        self.spent["check"] += time.perf_counter() - began
        right = [c for c in batch if key(c) in verdicts and verdicts[key(c)].right]
        if right:
            times = timing.timed(right, self.options.rounds, self.tick)
            for configuration in right:
                this = key(configuration)
                yield self._timed(this, times[this], verdicts[this])

    def _evidence(self, this: Key, **more: Any) -> TuneEvidence:
        place, static = self.static.get(this, (None, None))
        return TuneEvidence(
            parameters=self.configurations[this],
            source=self.source,
            device=self.plan.here.device,
            target=str(self.plan.target or ""),
            place=place,
            static=static,
            **more,
        )

    def _refused(self, this: Key, verdict: Judged) -> Record:
        """Return the record of a configuration that is wrong or could not be checked."""
        evidence = self._evidence(this, detector=verdict.detector, checked=verdict.workloads)
        about = self.common | ({"replay": verdict.replay} if verdict.replay else {})
        reason = f"{label(self.configurations[this])}: {verdict.reason}"
        return Record(status=verdict.status, reason=reason, evidence=evidence.to_dict(), **about)

    def _timed(self, this: Key, timed: Record, verdict: Judged) -> Record:
        """Return the record of a configuration that was timed. A wide interval does not fail it; the choice decides
        whether two times can be distinguished."""
        method = method_of(timed)
        evidence = self._evidence(this, detector=timed.detector, checked=verdict.workloads, **method)
        name, status = label(self.configurations[this]), timed.status
        reason = f"{name}: {timed.reason}"
        if held := held_down(timed):
            status, reason = Status.INCONCLUSIVE, f"{name}: the clocks were held down by {' and '.join(held)}"
        elif timed.median and status in (Status.PASS, Status.INCONCLUSIVE):
            status, reason = Status.PASS, f"{name}: right, {duration(timed.median)} ± {spread(timed) or 0.0:.1%}"
        return Record(
            status=status,
            reason=reason,
            evidence=evidence.to_dict(),
            artifacts=timed.artifacts,
            seconds=timed.seconds,
            median=timed.median,
            interval=timed.interval,
            samples=timed.samples,
            **self.common,
        )

    @staticmethod
    def _seconds(record: Record) -> float | None:
        return record.median if record.status is Status.PASS else None

    def _choice(self, timing: Timing, before: Record | None) -> Record:
        """Time the finalists together and return the record of the choice; return the earlier one if nothing is new."""
        passed = {k: r for k, r in self.records.items() if r.status is Status.PASS and r.median}
        times = {k: r.median for k, r in passed.items() if r.median}
        failed = sum(r.failed for r in self.records.values())
        if not passed:
            reason = f"none of {len(self.records)} configurations is right: {failed} failed"
            return Record(status=Status.FAIL, reason=reason, evidence=self._about().to_dict(), **self.common)
        marked = considered(times)
        if before and (earlier := TuneEvidence.of(before).choice) and earlier.considered == marked:
            return before
        rounds = 2 * self.options.rounds
        decision = decided(passed, self.configurations, self.default, lambda c: timing.timed(c, rounds, self.tick))
        held = sorted({reason for r in decision.again.values() for reason in held_down(r)})
        winner, lost = decision.winner, decision.lost
        if winner is None:
            reason = "every configuration that was right at first failed when it was timed again"
            return Record(status=Status.FAIL, reason=reason, evidence=self._about().to_dict(), **self.common)
        spent = {k: round(v, 1) for k, v in {**self.spent, **timing.spent.seconds}.items()}
        return self._chosen(winner, marked, failed + len(lost), lost, held, spent)

    def _about(self) -> TuneEvidence:
        return TuneEvidence(source=self.source, device=self.plan.here.device, target=str(self.plan.target or ""))

    def _chosen(
        self, winner: Winner, marked: str, failed: int, lost: list[Key], held: list[str], spent: dict[str, float]
    ) -> Record:
        space = self.plan.space
        this = key(winner.configuration)
        choice = Choice(
            winner=winner.configuration,
            median=winner.record.median,
            ties=winner.ties,
            default=space.default or None,
            gain=winner.gain,
            gain_verdict=winner.gain_verdict,
            ranking=winner.ranking,
            lost=[self.configurations[k] for k in lost] or None,
            strategy=self.plan.strategy,
            combinations=space.combinations,
            configurations=len(space.configurations),
            pruned=self.pruned,
            measured=len(self.records),
            known=self.taken,
            failed=failed,
            shape_class=shape_class(self.plan.workload),
            considered=marked,
            spent=spent,
        )
        evidence = replace(self._evidence(this, **method_of(winner.record)), parameters=None, choice=choice, place=None)
        reason = described(choice)
        if held:
            reason = f"the clocks were held down by {' and '.join(held)}, so nothing is chosen; {reason}"
        return Record(
            status=Status.INCONCLUSIVE if held else Status.PASS,
            reason=reason,
            evidence=evidence.to_dict(),
            seconds=time.perf_counter() - self.began,
            median=winner.record.median,
            interval=winner.record.interval,
            samples=winner.record.samples,
            **self.common,
        )
