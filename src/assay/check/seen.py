"""Collects the outcomes of the workloads tried so far and turns them into evidence."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assay.backends import Availability, Level
from assay.check.evidence import CallSeconds, CheckEvidence, Coverage, OutputError
from assay.check.launch_sites import LaunchSites
from assay.check.outcome import Outcome
from assay.coverage import Pair, Plan, Planned
from assay.coverage.again import AGAIN
from assay.coverage.launch_sites import LaunchSite
from assay.workload import Workload

_NUMBER = re.compile(r"\d+")
_SHOWN = 6
"""The most pairs that a record names for each reason."""


@dataclass
class Seen:
    plan: Plan | None = None
    tried: list[Planned] = field(default_factory=list)
    left_out: dict[str, list[Planned]] = field(default_factory=dict)
    """Planned workloads that were not tried, by reason."""
    refused: set[str] = field(default_factory=set)
    """The reasons that the kernel itself gave: the workload is outside what it supports."""
    limits: set[str] = field(default_factory=set)
    """The reasons that are limits of the interpreter and say nothing about the kernel. A slow call is not among them: a
    kernel can be slow on purpose where it is wrong."""
    workloads: int = 0
    nondeterministic: int = 0
    admitted: int = 0
    """Workloads on which the error is within its tolerance only because another order in float32 loses as much."""
    torch_wrong: dict[str, list[str]] = field(default_factory=dict)
    """Workloads on which PyTorch is wrong with a vendor's library, by library."""
    seconds: list[float] = field(default_factory=list)
    errors: dict[str, OutputError] = field(default_factory=dict)
    controls: dict[str, list[int]] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    launched: list[tuple[Workload, int]] = field(default_factory=list)
    """Workloads with the most programs of a launch, where an interpreter counts them."""
    launch_sites: LaunchSites | None = None
    """The launches in the kernel's source, once all planned workloads were tried."""
    failure: tuple[Workload, Outcome] | None = None
    _largest: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The kernel's and PyTorch's largest errors of each output, in units."""

    def add(self, workload: Workload, outcome: Outcome) -> None:
        self.seconds += outcome.seconds
        self.launched.append((workload, outcome.programs))
        self.nondeterministic += not outcome.deterministic
        self.admitted += any(e.admitted for e in outcome.errors)
        if outcome.torch_wrong:
            self.torch_wrong.setdefault(outcome.torch_wrong, []).append(str(workload))
        for e in outcome.errors:
            kernel, torch = self._largest.get(e.output, (0.0, 0.0))
            self._largest[e.output] = max(kernel, e.kernel["max"]), max(torch, e.torch["max"])
            if e.output not in self.errors or e.share > self.errors[e.output].share:
                ratio = e.ratio if math.isfinite(e.ratio) else None
                self.errors[e.output] = OutputError(e.share, ratio, e.kernel, e.torch, e.where, str(workload))
        for control, rejected in outcome.controls.items():
            counts = self.controls.setdefault(control, [0, 0])
            counts[0] += rejected
            counts[1] += 1
        self.artifacts += outcome.artifacts

    @property
    def first(self) -> int:
        """The number of workloads tried that do not repeat earlier sizes."""
        return self.workloads - sum(row.why == AGAIN for row in self.tried)

    @property
    def ratio(self) -> float:
        """The kernel's largest error over PyTorch's, for the output with the largest ratio. Both are over all
        workloads: on a single one PyTorch may be exact, and the ratio meaningless."""
        largest = [(k, p) for k, p in self._largest.values() if p > 0]
        return max((k / p for k, p in largest), default=1.0)

    def leave_out(self, why: str, rows: Iterable[Planned]) -> None:
        self.left_out.setdefault(why, []).extend(rows)

    def limit(self, why: str, row: Planned) -> None:
        """Leave out a workload that is too much for the interpreter."""
        self.limits.add(why)
        self.leave_out(why, [row])

    def refuse(self, why: str, row: Planned) -> None:
        """Leave out a workload that the kernel refuses. Refusals that differ only in numbers are one reason."""
        alike = (known for known in self.refused if _NUMBER.sub("", known) == _NUMBER.sub("", why))
        reason = next(alike, why)
        self.refused.add(reason)
        self.leave_out(reason, [row])

    def evidence(self, here: Availability) -> CheckEvidence:
        return CheckEvidence(
            workloads=self.workloads,
            mode=here.mode,
            device=here.device,
            interpreted=here.level is Level.INTERPRET,
            errors=self.errors,
            largest_over_torch=self.ratio,
            deterministic=self.nondeterministic == 0,
            nondeterministic_workloads=self.nondeterministic,
            admitted_workloads=self.admitted,
            torch_wrong=self.torch_wrong or None,
            controls_rejected={k: f"{r} of {n}" for k, (r, n) in self.controls.items()},
            beyond_range=self.beyond,
            coverage=self._coverage(self.plan) if self.plan is not None else None,
            call_seconds=CallSeconds(self.seconds[0], statistics.median(self.seconds)) if self.seconds else None,
        )

    def _coverage(self, plan: Plan) -> Coverage:
        """Return which pairs were visited, and which were not and why."""
        visited = plan.visited(self.tried)
        planned = plan.visited(plan.rows)
        impossible = {why: len(pairs) for why, pairs in plan.impossible.items()}
        not_visited = impossible | {
            "left for --thorough": plan.pairs - planned - sum(impossible.values()),
            **{why: f"{len(rows)} workloads" for why, rows in self.left_out.items()},
        }
        why = Counter(row.why.partition(" ")[0] if row.why.startswith("constant") else row.why for row in self.tried)
        return Coverage(
            pairs=plan.pairs,
            visited=visited,
            workloads=dict(why),
            not_visited={k: v for k, v in not_visited.items() if v},
            examples={k: [_shown(p) for p in pairs[:_SHOWN]] for k, pairs in plan.impossible.items()},
            left_out={k: [str(r.workload) for r in rows[:_SHOWN]] for k, rows in self.left_out.items()},
            constants={"sizes": list(plan.constants.sizes), "values": list(plan.constants.values)},
            largest=max((row.cost for row in self.tried), default=0),
            launches={str(site): n for site, n in self._reached()} or None,
        )

    def _reached(self) -> list[tuple[LaunchSite, int]]:
        """Return how many workloads led to each launch in the source; nothing if it has one alone, or it is unknown."""
        reached = self.launch_sites.reached(self.tried) if self.launch_sites else None
        return [(site, reached[site]) for site in self.launch_sites.sites] if self.launch_sites and reached else []

    @property
    def not_launched(self) -> list[str]:
        """Descriptions of the launches in the source that no workload led to."""
        return [f"{site}{self._first(site)}" for site, count in self._reached() if not count]

    def _first(self, site: LaunchSite) -> str:
        workload = self.launch_sites.cheapest.get(site) if self.launch_sites else None
        return f", as on {','.join(f'{k}={v}' for k, v in workload.axes)}" if workload else ""


def _shown(pair: Pair) -> str:
    return " × ".join(f"{factor}: {level}" for factor, level in pair)
