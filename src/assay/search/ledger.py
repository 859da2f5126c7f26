"""The trials of one study in its storage: enqueued, claimed, finished, and taken over from processes that are gone.

Several processes may work on one study. Each point is judged once and the requested number of trials is finished,
because of one rule: if two trials have the same point, or there is one too many, the trial with the lower number goes
on and the other withdraws."""

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
"""Attempts at a trial whose process is lost every time."""
_UNSETTLED = 30.0
"""Seconds within which a process must record the point of its new trial."""


@dataclass(frozen=True)
class Trial:
    """A trial that finished, was pruned or failed for good."""

    number: int
    state: str
    point: Point
    judged: dict[str, Any] | None
    why: str
    attempts: int
    suggested_by: str
    seconds: float


class Withdrawn(Exception):
    """Raised for a trial whose point is already known, or that is one too many."""

    def __init__(self, point: Point) -> None:
        self.point = point


class Ledger:
    def __init__(self, study: Any, knobs: Space, wanted: int) -> None:
        self.study, self.knobs, self.wanted = study, knobs, wanted
        self._states = optuna().trial.TrialState
        self._seen: list[Any] | None = None

    def look(self) -> None:
        """Drop the cached trials: other processes write to the storage, too."""
        self._seen = None

    def trials(self) -> list[Trial]:
        """Return the trials that ended, without those that withdrew or were run again."""
        return [self._read(t) for t in self._all() if _state(t)]

    def counted(self) -> int:
        """Return the number of trials that count towards the requested number; pruned ones do not."""
        return sum(trial.state != PRUNED for trial in self.trials())

    def on_their_way(self) -> int:
        """Return the number of trials that count or are running."""
        return self.counted() + sum(self._runs(t) for t in self._all())

    def begun(self) -> int:
        return len(self._all())

    def others_run(self) -> bool:
        """Return whether trials of other processes are running."""
        return any(t.user_attrs.get("owner", owner.me()) != owner.me() and self._runs(t) for t in self._all())

    def enqueue(self, point: Mapping[str, str], by: str, attempts: int = 1) -> None:
        self.study.enqueue_trial(space.places(point, self.knobs), user_attrs={"by": by, "attempts": attempts})
        self.look()

    def known(self) -> set[Key]:
        """Return the points that are done or running."""
        return {space.key(t.user_attrs["point"]) for t in self._all() if "point" in t.user_attrs and self._stands(t)}

    def claim(self) -> tuple[Any, Point]:
        """Return a new trial and its point. Raise Withdrawn if the point is already known or enough trials run."""
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
        """Return all trials, once those with lower numbers have recorded their points."""
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
        """Give up a running trial and enqueue its point again. Return False, and fail the trial, if `why` is given and
        this was its last attempt."""
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
        """Enqueue again the trials that processes now gone had begun; return how many. This includes a trial judged in
        full before its process died, since not all of its results may have been written."""
        lost = [t for t in self._all() if t.state == self._states.RUNNING and not self._runs(t)]
        for trial in lost:
            self.again(trial.number, "")
        return len(lost)

    def beat(self, trials: list[Any]) -> None:
        for trial in trials:
            trial.set_user_attr("beat", time.time())

    def seconds(self) -> list[float]:
        """Return the seconds of each finished trial."""
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
        if "owner" not in trial.user_attrs:  # it has just begun, or its process died at once
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
    """Return how the trial ended; empty if it runs or was given up. An end that a process wrote does not count until
    the trial is finished in Optuna."""
    return trial.user_attrs.get("end", {}).get("state", "") if trial.state.is_finished() else ""
