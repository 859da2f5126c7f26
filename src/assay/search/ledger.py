"""The trials of one study in its storage: asked for, claimed, told, and taken over from processes that are gone.

Several processes may work on one study. Each point is done once, and as many trials are finished as were asked for, by
one rule: of two that began the same point, or one too many, the trial with the lower number goes on and the other
withdraws."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.search import owner, space
from assay.search.space import Key, Point, Space
from assay.search.storage import optuna

FINISHED, PRUNED, FAILED = "finished", "pruned", "failed"
ATTEMPTS = 3
"""How often a trial is begun whose process is lost every time."""
_UNSETTLED = 30.0
"""Seconds in which a process says which point its new trial has."""


@dataclass(frozen=True)
class Trial:
    """One that came to an end that counts."""

    number: int
    state: str
    point: Point
    judged: dict[str, Any] | None
    why: str
    attempts: int
    suggested_by: str
    seconds: float


class Withdrawn(Exception):
    """A trial whose point is known, or that is one too many."""

    def __init__(self, point: Point) -> None:
        self.point = point


class Ledger:
    def __init__(self, study: Any, knobs: Space, wanted: int) -> None:
        self.study, self.knobs, self.wanted = study, knobs, wanted
        self._states = optuna().trial.TrialState
        self._seen: list[Any] | None = None

    def look(self) -> None:
        """Forget what the storage said: other processes write into it, too."""
        self._seen = None

    def trials(self) -> list[Trial]:
        """Those that came to an end, without the withdrawn and those that were run again."""
        return [self._read(t) for t in self._all() if _state(t)]

    def counted(self) -> int:
        """Those that count towards what was asked for: a combination that cannot be built does not."""
        return sum(trial.state != PRUNED for trial in self.trials())

    def on_their_way(self) -> int:
        """Those that count, and those that are being done."""
        return self.counted() + sum(self._runs(t) for t in self._all())

    def begun(self) -> int:
        return len(self._all())

    def others_run(self) -> bool:
        """Whether trials of other processes are on their way."""
        return any(t.user_attrs.get("owner", owner.me()) != owner.me() and self._runs(t) for t in self._all())

    def enqueue(self, point: Mapping[str, str], by: str, attempts: int = 1) -> None:
        self.study.enqueue_trial(space.places(point, self.knobs), user_attrs={"by": by, "attempts": attempts})
        self.look()

    def known(self) -> set[Key]:
        """Points that are done, or being done."""
        return {space.key(t.user_attrs["point"]) for t in self._all() if "point" in t.user_attrs and self._stands(t)}

    def claim(self) -> tuple[Any, Point]:
        """A new trial, or a Withdrawn where its point is known already or enough are on their way."""
        trial = self.study.ask()
        trial.set_user_attr("owner", owner.me())
        point = space.suggested(trial, self.knobs)
        trial.set_user_attr("point", point)
        self.look()
        if why := self._superfluous(trial.number, point):
            trial.set_user_attr("withdrawn", why)
            self.study.tell(trial, state=self._states.FAIL)
            self.look()
            raise Withdrawn(point)
        return trial, point

    def _superfluous(self, number: int, point: Point) -> str:
        others = [t for t in self._settled(number) if t.number != number and self._stands(t)]
        for t in others:
            ended = t.state.is_finished()
            if (ended or t.number < number) and space.key(t.user_attrs.get("point", {})) == space.key(point):
                return f"the same as trial {t.number}"
        before = [t for t in others if _state(t) != PRUNED and (_state(t) or t.number < number)]
        return "enough trials are on their way" if len(before) >= self.wanted else ""

    def _settled(self, number: int) -> list[Any]:
        """All trials, once those with lower numbers have said which points they have."""
        until = time.monotonic() + _UNSETTLED
        while True:
            trials = self._all()
            open_ones = [t for t in trials if t.number < number and self._runs(t) and "point" not in t.user_attrs]
            if not open_ones or time.monotonic() > until:
                return trials
            time.sleep(0.02)
            self.look()

    def finish(self, trial: Any, judged: Mapping[str, Any], values: list[float], shortfall: float) -> None:
        trial.set_user_attr("shortfall", shortfall)
        trial.set_user_attr("end", {"state": FINISHED, "judged": dict(judged)})
        self._tell(trial, values)

    def prune(self, trial: Any, why: str) -> None:
        trial.set_user_attr("end", {"state": PRUNED, "why": why})
        self._tell(trial, state=self._states.PRUNED)

    def fail(self, trial: Any, why: str) -> None:
        trial.set_user_attr("end", {"state": FAILED, "why": why})
        self._tell(trial, state=self._states.FAIL)

    def again(self, number: int, why: str) -> bool:
        """A running trial is given up and put into the queue once more; False where that has happened too often."""
        trial = next(t for t in self._all() if t.number == number)
        attempts = int(trial.user_attrs.get("attempts", 1))
        last = bool(why) and attempts >= ATTEMPTS
        end = {"state": FAILED, "why": why} if last else {}
        self.study._storage.set_trial_user_attr(trial._trial_id, "end", end)
        self._tell(number, state=self._states.FAIL, skip_if_finished=True)
        if "point" in trial.user_attrs and not last:
            self.enqueue(trial.user_attrs["point"], trial.user_attrs.get("by", ""), attempts + 1)
        return not last

    def take_over(self) -> int:
        """Run again what processes that are gone had begun: how many trials. What had been judged in full before its
        process died is begun again as well: nobody knows whether all of it was written."""
        lost = [t for t in self._all() if t.state == self._states.RUNNING and not self._runs(t)]
        for trial in lost:
            self.again(trial.number, "")
        return len(lost)

    def beat(self, trials: list[Any]) -> None:
        for trial in trials:
            trial.set_user_attr("beat", time.time())

    def seconds(self) -> list[float]:
        """Of each trial that finished."""
        return [t.seconds for t in self.trials() if t.state == FINISHED]

    def _all(self) -> list[Any]:
        if self._seen is None:
            self._seen = self.study.get_trials(deepcopy=False)
        return self._seen

    def _tell(self, trial: Any, values: list[float] | None = None, **how: Any) -> None:
        self.study.tell(trial, values, **how)
        self.look()

    def _runs(self, trial: Any) -> bool:
        if trial.state != self._states.RUNNING:
            return False
        if "owner" not in trial.user_attrs:  # just begun, or by a process that died at once
            return time.time() - trial.datetime_start.timestamp() < _UNSETTLED
        beat = trial.user_attrs.get("beat", trial.datetime_start.timestamp())
        return not owner.gone(trial.user_attrs["owner"], beat)

    def _stands(self, trial: Any) -> bool:
        return bool(_state(trial)) or self._runs(trial)

    def _read(self, trial: Any) -> Trial:
        about, end = trial.user_attrs, trial.user_attrs["end"]
        return Trial(
            number=trial.number,
            state=end["state"],
            point=dict(about["point"]),
            judged=end.get("judged"),
            why=end.get("why", ""),
            attempts=int(about.get("attempts", 1)),
            suggested_by=about.get("by", ""),
            seconds=trial.duration.total_seconds() if trial.duration else 0.0,
        )


def _state(trial: Any) -> str:
    """How it ended; empty: not yet, or it was given up. What a process wrote before it could say that its trial is over
    does not count."""
    return trial.user_attrs.get("end", {}).get("state", "") if trial.state.is_finished() else ""
