"""A search over its trials: the best so far of each sampler, with a band over seeds."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.search.evidence import SearchEvidence

TITLE = "Best so far"
CAPTION = (
    "What the best trial so far had, over the trials of a study: one line for each sampler, the mean over seeds, with "
    "a band that spans them. Fewest bits count among trials that are accurate enough."
)
_LABEL = "datum.value <= 1 ? format(100 * datum.value, '~g') + '\u00a0%' : format(datum.value, '~s')"
"""Accuracy is a share; bits and weights are many."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    points = curves(records)
    if not points:
        return None
    cases = list(dict.fromkeys(p["case"] for p in points))
    chosen = alt.Chart(parts.data("best-so-far", points)).transform_filter(parts.picked("case"))
    key = alt.Color("sampler:N", legend=alt.Legend(title=None, symbolOpacity=1))
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
    """One row for each sampler and number of trials."""
    studies: dict[tuple[str, str], dict[str, list[tuple[Record, SearchEvidence]]]] = {}
    for record in (r for r in records if r.verb == "search"):
        e = SearchEvidence.of(record)
        if e.role == "trial" and e.state == "finished" and len(e.goals) == 1:
            sampler = str(e.sampler.get("name") or e.suggested_by)
            goal = e.goals[0]
            case = " · ".join([record.kernel, e.study, e.mode or goal.name, "quick" if e.quick else "whole"])
            studies.setdefault((case, sampler), {}).setdefault(f"{e.name} {e.seed}", []).append((record, e))
    made = []
    for (case, sampler), runs in studies.items():
        lines = [_best_so_far([e for _, e in run]) for run in runs.values()]
        first = next(iter(runs.values()))[0][0]
        for at in range(min(map(len, lines))):
            values = [v for line in lines if (v := line[at]) is not None]
            if values:
                about = {"case": case, "sampler": sampler, "trial": at + 1, "mean": sum(values) / len(values)}
                made.append(rows.common(first) | about | {"low": min(values), "high": max(values)})
    return made


def _best_so_far(run: Sequence[SearchEvidence]) -> list[float | None]:
    """The value of the goal; None before the first trial that is accurate enough."""
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
