"""Records of a study: the control, each trial, and the winner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay import provenance
from assay.compress.evidence import Sizes
from assay.record import Record, Status
from assay.search import samplers
from assay.search.evidence import SearchEvidence
from assay.search.ledger import FINISHED, PRUNED, Trial
from assay.search.planning import Plan, Planned
from assay.search.subjects.subject import Judged
from assay.units import count

_STATUS = {FINISHED: Status.PASS, PRUNED: Status.SKIPPED}


@dataclass(frozen=True)
class Writer:
    plan: Plan
    planned: Planned
    sizes: dict[str, int]
    control_result: dict[str, Any] | None

    def control(self) -> Record:
        assert self.control_result is not None
        judged = Judged.read(self.control_result)
        reason = f"{judged.accuracy:.2%} of the validation split; {judged.bits:,} bits"
        return self._record("control", Status.PASS, reason, self._evidence("control", judged))

    def trial(self, trial: Trial, best: bool) -> Record:
        """`best`: whether no trial with a lower number is better."""
        judged = Judged.read(trial.judged) if trial.judged else None
        evidence = self._evidence(
            "trial",
            judged,
            trial=trial.number,
            state=trial.state,
            why=trial.why if trial.state != FINISHED else "",
            attempts=trial.attempts,
            parameters=trial.point,
            suggested_by=trial.suggested_by or self.plan.options.sampler,
            allowed=self.allowed(trial.judged),
            best=best,
        )
        reason = self._said(judged) if judged else trial.why
        status = _STATUS.get(trial.state, Status.FAIL)
        return self._record(f"trial={trial.number}", status, reason, evidence, trial.seconds)

    def winner(self, trial: Trial, judged: Judged, control_test: float | None) -> Record:
        evidence = self._evidence(
            "winner",
            judged,
            trial=trial.number,
            state=trial.state,
            attempts=trial.attempts,
            parameters=trial.point,
            suggested_by=trial.suggested_by or self.plan.options.sampler,
            allowed=True,
            best=True,
            control_test=control_test,
        )
        reason = f"trial {trial.number}: {self._said(judged)}; {judged.test:.2%} of the test split"
        if control_test is not None and judged.test is not None:
            reason += f", {100 * (judged.test - control_test):+.2f} points of the control's"
        return self._record(f"winner,trial={trial.number}", Status.PASS, reason, evidence)

    def none(self, trials: int) -> Record:
        """Return the record for a study in which no trial is allowed."""
        points = self.plan.goals.points
        reason = (
            f"none of {count(trials, 'trial')} is within {points:g} points of the control: more --trials or --points"
        )
        if points is None:
            reason = "no trial finished: their records say why"
        return self._record("winner", Status.INCONCLUSIVE, reason, self._evidence("winner", None))

    def allowed(self, judged: dict[str, Any] | None) -> bool | None:
        if judged is None or self.plan.goals.points is None:
            return None
        return self.plan.goals.shortfall(judged, self.control_result) <= 0

    def _said(self, judged: Judged) -> str:
        said = f"{judged.accuracy:.2%} of the validation split"
        if self.control_result is not None:
            said += f", {100 * (judged.accuracy - self.control_result['accuracy']):+.2f} points"
            said += f"; {judged.bits:,} bits, {self.control_result['bits'] / max(1, judged.bits):.2f} × smaller"
        else:
            said += f"; {judged.bits:,} bits"
        return said + (f"; {1e3 * judged.latency:.3f} ms" if judged.latency is not None else "")

    def _evidence(self, role: str, judged: Judged | None, **more: Any) -> SearchEvidence:
        setup, goals, control = self.planned.setup, self.plan.goals, self.control_result
        measured: dict[str, Any] = {}
        if judged is not None:
            measured = {name: getattr(judged, name) for name in ("accuracy", "bits", "weights", "test", "latency")}
            measured |= {"file": judged.file, "layers": judged.layers}
        return SearchEvidence(
            study=self.plan.kind,
            name=self.planned.name,
            role=role,
            sampler=samplers.arguments(self.plan.options.sampler, setup.seed),
            goals=list(goals.goals),
            points=goals.points,
            mode=setup.mode,
            format=setup.format,
            epochs=setup.epochs,
            seed=setup.seed,
            device=setup.device,
            data=setup.data or self.plan.entry.data,
            sizes=Sizes(**self.sizes),
            quick=setup.quick,
            control_accuracy=control["accuracy"] if control else None,
            control_bits=control["bits"] if control else None,
            **measured | more,
        )

    def _record(self, what: str, status: Status, reason: str, evidence: SearchEvidence, seconds: float = 0.0) -> Record:
        setup = self.planned.setup
        label = [self.plan.kind, *([f"format={setup.format}"] if setup.format else [])]
        label += [f"mode={setup.mode}"] if setup.mode else []
        label += [
            f"sampler={self.plan.options.sampler}",
            *["seeded"] * self.plan.seeded,
            what,
            f"seed={setup.seed}",
            *["quick"] * setup.quick,
        ]
        replay = f"{self.plan.replay} --seeds {setup.seed}" + (f" --format {setup.format}" if setup.format else "")
        replay += f" --mode {setup.mode}" if setup.mode else ""
        return Record(
            "search",
            self.plan.entry.name,
            ",".join(label),
            status,
            reason,
            self.plan.options.run,
            evidence.to_dict(),
            replay,
            source=provenance.source_of(self.plan.entry.file),
            provenance=provenance.provenance(setup.seed),
            seconds=seconds,
        )
