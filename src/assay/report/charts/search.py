"""The best value so far over the trials of a search, per sampler, mode and format, with a band over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.search.evidence import SENSITIVITY, SearchEvidence

TITLE = "Best so far"
CAPTION = (
    "What the best trial so far had, over the trials of a study: one line for each sampler, mode and format, the mean "
    "over seeds, with a band that spans them. Fewest bits count among trials that are accurate enough."
)
_LABEL = "datum.value <= 1 ? format(100 * datum.value, '~g') + '\u00a0%' : format(datum.value, '~s')"
"""Formats accuracy as a share, and bits and weights as large numbers."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    points = curves(records)
    if not points:
        return None
    cases = list(dict.fromkeys(p["case"] for p in points))
    chosen = alt.Chart(parts.data("best-so-far", points)).transform_filter(parts.picked("case"))
    key = alt.Color("line:N", legend=alt.Legend(title=None, symbolOpacity=1))
    drawn = chosen.encode(x=alt.X("trial:Q", title="trials", axis=alt.Axis(format="d", tickMinStep=1)), color=key)
    scale = alt.Scale(zero=False, padding=8)
    up = alt.Y("mean:Q", title="best so far", axis=alt.Axis(labelExpr=_LABEL), scale=scale)
    return (
        alt.layer(
            drawn.mark_area(opacity=0.2, interpolate="step-after").encode(
                y=alt.Y("low:Q", title="best so far", scale=scale), y2="high:Q"
            ),
            drawn.mark_line(interpolate="step-after", strokeWidth=1.8).encode(y=up),
        )
        .add_params(parts.pick("case", cases, "Study"))
        .properties(width=620, height=300, description="Best so far over trials, by sampler")
    )


def curves(records: Sequence[Record]) -> list[rows.Row]:
    """Return one row per line of a study and number of trials. Runs that differ only in their seeds share a line."""
    studies: dict[str, dict[_Line, dict[str, list[tuple[Record, SearchEvidence]]]]] = {}
    seeded = {e.name for _, e in _trials(records) if e.suggested_by == SENSITIVITY}
    for record, e in _trials(records):
        case = " · ".join([record.kernel, e.study, e.goals[0].name, "quick" if e.quick else "whole"])
        line = _Line(str(e.sampler.get("name") or e.suggested_by), e.name in seeded, e.mode, e.format)
        studies.setdefault(case, {}).setdefault(line, {}).setdefault(f"{e.name} {e.seed}", []).append((record, e))
    made = []
    for case, lines in studies.items():
        for line, runs in lines.items():
            values = [_best_so_far([e for _, e in run]) for run in runs.values()]
            first = next(iter(runs.values()))[0][0]
            for at in range(min(map(len, values))):
                here = [v for of_run in values if (v := of_run[at]) is not None]
                if here:
                    about = {"case": case, "line": line.label(lines), "trial": at + 1, "mean": sum(here) / len(here)}
                    made.append(rows.common(first) | about | {"low": min(here), "high": max(here)})
    return made


@dataclass(frozen=True)
class _Line:
    sampler: str
    seeded: bool
    mode: str
    format: str

    def label(self, others: Iterable[_Line]) -> str:
        """Return the sampler, and what distinguishes it from the other lines of its study."""
        words = [self.sampler + ", seeded by sensitivity" * self.seeded]
        words += [self.mode] if len({o.mode for o in others}) > 1 else []
        words += [self.format] if len({o.format for o in others if o.mode == self.mode}) > 1 else []
        return " · ".join(words)


def _trials(records: Sequence[Record]) -> Iterator[tuple[Record, SearchEvidence]]:
    """Yield the finished trials of searches with a single goal."""
    for record in records:
        if record.verb == "search":
            e = SearchEvidence.of(record)
            if e.role == "trial" and e.state == "finished" and len(e.goals) == 1:
                yield record, e


def _best_so_far(run: Sequence[SearchEvidence]) -> list[float | None]:
    """Return the best value of the goal after each trial; None before the first trial that is accurate enough."""
    best: float | None = None
    line = []
    for e in sorted(run, key=lambda e: e.trial or 0):
        goal = e.goals[0]
        value = getattr(e, goal.name, None)
        if value is not None and e.allowed is not False:
            better = max if goal.direction == "maximize" else min
            best = float(value) if best is None else better(best, float(value))
        line.append(best)
    return line
