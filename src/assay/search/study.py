"""One study: requests points until enough trials are finished, submits them to a scheduler and stores the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.errors import AssayError, UsageError
from assay.record import Record
from assay.search import owner, samplers, space
from assay.search.evidence import SENSITIVITY
from assay.search.guide import Guide
from assay.search.ledger import ATTEMPTS, FINISHED, Ledger, Trial, Withdrawn
from assay.search.planning import Plan, Planned, identity
from assay.search.records import Writer
from assay.search.scheduler import NODE, Job, Outcome, Scheduler
from assay.search.space import Point, Space
from assay.search.storage import Storage
from assay.search.subjects.subject import Judged
from assay.units import count, duration
from assay.worker.limits import WorkerLost

Tick = Callable[[str, int], None]
"""Called with the current activity and the number of this study's trials done."""
Resumed = Callable[[str, int], None]
"""Called once for a study that continues, with its name and the number of trials it has already."""
_PREPARING = 24 * 3600.0
"""Seconds for the preparation before the trials: a base model may have to be trained."""
_ALIKE = 3
"""Known points in a row that a sampler may suggest before a new point near them is taken instead."""
_DRAWS = 200
_MOST = 200_000
"""Largest space, in points, that is enumerated to find the points that are left."""
_WAIT = 1.0
_CHANGED = "another name (--study), or --restart"


class Study:
    def __init__(
        self,
        plan: Plan,
        planned: Planned,
        scheduler: Scheduler,
        storage: Storage,
        tick: Tick,
        resumed: Resumed = lambda name, kept: None,
    ) -> None:
        self.plan, self.planned, self.scheduler, self.storage, self.tick = plan, planned, scheduler, storage, tick
        self.resumed = resumed
        self._jobs = 0
        self._exhausted = False
        self._beaten = time.monotonic()

    def run(self) -> Iterator[Record]:
        """Yield the records of the control, of every trial, those of earlier runs first, and of the winner."""
        self.tick("reading the data", 0)
        told = self._ask("space")
        knobs = space.ordered(space.read(told["space"]))
        with self.storage.explained():
            study = self._opened(knobs)
            self._prove_alive(study, knobs)
            control = self._control(study)
            self.writer = Writer(self.plan, self.planned, told["sizes"], control)
            wanted = self.plan.trials or len(list(space.points(knobs)))
            self.ledger = Ledger(study, knobs, wanted)
            study.sampler = self._sampler(knobs, self.ledger.begun())
            if kept := len(self.ledger.trials()):
                self.resumed(self.planned.name, kept)
            if control is not None:
                yield self.writer.control()
            yield from self._trials()
            if self.plan.winner:
                yield from self._winners(study)

    # before the trials

    def _opened(self, knobs: Space) -> Any:
        """Return the study in the storage. Raise UsageError if it was created with other settings."""
        name, options = self.planned.name, self.plan.options
        if options.restart and name in self.storage.names():
            self.storage.delete(name)
        known = name in self.storage.names()
        sampler = self._sampler(knobs, 0)  # refuses a grid that is too large before anything is written
        study = self.storage.study(name, self.plan.goals.directions, sampler)
        wanted = {"identity": identity(options, self.planned.setup, self.plan.goals), "space": space.plain(knobs)}
        has = {key: study.user_attrs.get(key) for key in wanted}
        if known and any(value is None for value in has.values()) and study.get_trials(deepcopy=False):
            raise UsageError(f"the study {name} in {self.storage.name} is none of Assay's, or damaged", fix=_CHANGED)
        for key, value in wanted.items():
            if has[key] is None:
                study.set_user_attr(key, value)
            elif _as_json(has[key]) != _as_json(value):
                differs = [part for part in value if _as_json(has[key].get(part)) != _as_json(value[part])]
                what = ", ".join(differs) or key
                raise UsageError(f"the study {name} was made with other settings ({what})", fix=_CHANGED)
        return study

    def _prove_alive(self, study: Any, knobs: Space) -> None:
        """Raise UsageError if a knob of the space has no effect. This is checked once for each study."""
        if study.user_attrs.get("alive"):
            return
        self.tick("proving that every knob does something", 0)
        dead = self._ask("alive", space=space.plain(knobs))["dead"]
        if dead:
            self.storage.delete(self.planned.name)
            said = "; ".join(one["why"] for one in dead)
            names = ", ".join(dict.fromkeys(one["knob"] for one in dead))
            raise UsageError(f"dead knobs: {said}", fix=f"leave out {names}, or fix the function that builds the model")
        study.set_user_attr("alive", True)

    def _control(self, study: Any) -> dict[str, Any] | None:
        if not self.plan.control:
            return None
        if "control" not in study.user_attrs:
            self.tick("the control", 0)
            study.set_user_attr("control", self._ask("control"))
        return dict(study.user_attrs["control"])

    def _sampler(self, knobs: Space, begun: int) -> Any:
        limited = self.plan.goals.points is not None
        constraints = (lambda trial: (trial.user_attrs.get("shortfall", 100.0),)) if limited else None
        return samplers.sampler(self.plan.options.sampler, self.planned.setup.seed, knobs, constraints, begun)

    # the trials

    def _trials(self) -> Iterator[Record]:
        shown: set[int] = set()
        running: dict[int, Any] = {}
        try:
            over = False
            while True:
                self.ledger.look()
                self.ledger.take_over()
                for trial in self.ledger.trials():  # including those of other processes
                    if trial.number not in shown:
                        shown.add(trial.number)
                        yield self.writer.trial(trial, self._best(trial))
                if over:
                    return
                while len(running) < self.scheduler.slots and (begun := self._next(bool(running))):
                    running[begun.job.id] = begun.trial
                    self.scheduler.submit(begun.job)
                over = not running and self._over()
                self.tick(self._progress(len(running)), self.ledger.counted())
                self._beat(list(running.values()))
                if not running:
                    time.sleep(0.0 if over else _WAIT)  # other processes run the remaining trials
                elif outcome := self.scheduler.outcome(_WAIT):
                    self._take(running.pop(outcome.job.id), outcome)
        finally:
            for trial in running.values():  # Ctrl-C: the next run begins with them
                self.ledger.again(trial.number, "")

    def _over(self) -> bool:
        enough = self._exhausted or self.ledger.counted() >= self.ledger.wanted
        return enough and not self.ledger.others_run()

    def _next(self, busy: bool) -> _Begun | None:
        """Begin and return the next trial; None if none is needed now, or the space has no point left."""
        if self.ledger.on_their_way() >= self.ledger.wanted:
            return None
        if self.plan.seeded and (wanted := self._guided()):
            known = self.ledger.known()
            left_to_do = [point for point in wanted if space.key(point) not in known]
            if not left_to_do:
                return None  # they are running, and the next points depend on them
            self.ledger.enqueue(left_to_do[0], SENSITIVITY)
        for _ in range(_ALIKE):
            if self.ledger.on_their_way() >= self.ledger.wanted:
                return None
            try:
                return self._begin(*self.ledger.claim())
            except Withdrawn as known:
                near = known.point
        left = self._left(near)
        if left is None:
            self._exhausted = not busy
            return None
        self.ledger.enqueue(left, f"{self.plan.options.sampler}, beside a known point")
        try:
            return self._begin(*self.ledger.claim())
        except Withdrawn:
            return None

    def _guided(self) -> list[Point]:
        """Return the points that the sensitivity pass wants; empty once it is over."""
        points, control = self.plan.goals.points, self.writer.control_result
        assert points is not None and control is not None
        done = {space.key(t.point): t.judged for t in self.ledger.trials()}
        return Guide(self.ledger.knobs, points, control, done).wanted()

    def _begin(self, trial: Any, point: Point) -> _Begun:
        self._jobs += 1
        return _Begun(Job(self._jobs, self._question("judge", point=point), self.plan.options.timeout), trial)

    def _left(self, near: Point) -> Point | None:
        """Return a point that has not been begun, preferably near the one that was suggested; None if there is none."""
        knobs, known = self.ledger.knobs, self.ledger.known()
        rng = Random(f"{self.planned.setup.seed} {self.ledger.begun()}")
        for draw in range(_DRAWS):
            drawn = space.beside(near, knobs, rng, steps=1 + draw // 20)
            if space.key(drawn) not in known:
                return drawn
        if space.size(knobs, _MOST) is None:
            return None
        return next((point for point in space.points(knobs) if space.key(point) not in known), None)

    def _take(self, trial: Any, outcome: Outcome) -> None:
        goals = self.plan.goals
        if outcome.lost is not None and outcome.lost.how not in ("timeout", "memory"):
            self.ledger.again(trial.number, outcome.lost.last_words())
        elif outcome.lost is not None:
            self.ledger.fail(trial, outcome.lost.last_words())
        elif outcome.refused is not None:
            self.ledger.fail(trial, str(outcome.refused))
        elif outcome.answer is not None and "infeasible" in outcome.answer:
            self.ledger.prune(trial, outcome.answer["infeasible"])
        elif outcome.answer is not None:
            judged = outcome.answer
            shortfall = goals.shortfall(judged, self.writer.control_result)
            self.ledger.finish(trial, judged, goals.values(judged), shortfall)

    def _best(self, trial: Trial) -> bool:
        before = [(t.number, t.judged) for t in self.ledger.trials() if t.number <= trial.number and t.judged]
        return trial.number in self.plan.goals.chosen(before, self.writer.control_result)

    def _progress(self, running: int) -> str:
        finished = self._finished()
        best = self.plan.goals.chosen(finished, self.writer.control_result)
        said = [f"{running} running"]
        if best:
            judged = dict(finished)[best[0]]
            said.append(f"best {judged['accuracy']:.2%}, {judged['bits']:,} bits")
        if spent := self.ledger.seconds():
            left = max(0, self.ledger.wanted - self.ledger.counted()) * sum(spent) / len(spent) / self.scheduler.slots
            said.append(f"{duration(left)} left")
        return " · ".join(said)

    def _beat(self, trials: list[Any]) -> None:
        if time.monotonic() - self._beaten > owner.BEAT:
            self.ledger.beat(trials)
            self._beaten = time.monotonic()

    def _finished(self) -> list[tuple[int, Mapping[str, Any]]]:
        return [(t.number, t.judged) for t in self.ledger.trials() if t.state == FINISHED and t.judged]

    # after the trials

    def _winners(self, study: Any) -> Iterator[Record]:
        """Yield the records of the winners. Only here is the test split read: once for each winner and once for the
        control. The results are stored in the study, so that a repeated command reports the same."""
        finished = self._finished()
        chosen = self.plan.goals.chosen(finished, self.writer.control_result)
        if not chosen:
            yield self.writer.none(len(finished))
            return
        trials = {trial.number: trial for trial in self.ledger.trials()}
        known: dict[str, Any] = dict(study.user_attrs.get("winners", {}))
        for number in chosen:
            file = self._file(number, len(chosen))
            if str(number) not in known or file is not None:
                self.tick(f"the test split, for {count(len(chosen), 'winner')}", self.ledger.counted())
                known[str(number)] = self._ask("judge", point=trials[number].point, test=True, file=file)
                study.set_user_attr("winners", known)
            control_test = None
            if self.plan.control:
                if "control_test" not in study.user_attrs:
                    study.set_user_attr("control_test", self._ask("control", test=True)["test"])
                control_test = study.user_attrs["control_test"]
            yield self.writer.winner(trials[number], Judged.read(known[str(number)]), control_test)

    def _file(self, number: int, winners: int) -> str | None:
        file = self.planned.file
        if file is None or winners == 1:
            return None if file is None else str(file)
        return str(file.with_name(f"{file.stem}-trial{number}{file.suffix or '.safetensors'}"))

    def _question(self, do: str, **more: Any) -> dict[str, Any]:
        return {"do": do, "setup": self.planned.setup.plain(), **more}

    def _ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Ask a question and wait for the answer, again on another node if its node is lost."""
        outcome = self._asked(do, **more)
        for _ in range(1, ATTEMPTS):
            if outcome.lost is None or outcome.lost.how != NODE:
                break
            outcome = self._asked(do, **more)
        if outcome.refused is not None:
            raise outcome.refused.wrong_use or outcome.refused
        if outcome.lost is not None:
            raise _Lost(outcome.lost)
        assert outcome.answer is not None
        return outcome.answer

    def _asked(self, do: str, **more: Any) -> Outcome:
        self._jobs += 1
        self.scheduler.submit(Job(self._jobs, self._question(do, **more), _PREPARING))
        while (outcome := self.scheduler.outcome(_WAIT)) is None:
            pass
        return outcome


@dataclass(frozen=True)
class _Begun:
    job: Job
    trial: Any


class _Lost(AssayError):
    """The process that prepares a study is gone."""

    def __init__(self, lost: WorkerLost) -> None:
        super().__init__(
            f"the process that prepares the study is lost: {lost.last_words()}",
            fix="ask again; the study goes on where it stopped",
        )


def _as_json(value: Any) -> Any:
    """Return the value as the storage gives it back: with lists for tuples."""
    import json

    return json.loads(json.dumps(value))
