"""Every timed sample, round by round: the spread behind a median."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts


def draw(records: Sequence[Record]) -> parts.Chart | None:
    sampled = rows.samples(records)
    if not sampled:
        return None
    clocks = [c for c in rows.CLOCKS.values() if any(r["clock"] == c for r in sampled)]
    order = alt.EncodingSortField(field="middle", op="min", order="ascending")
    base = (
        alt.Chart(parts.data("samples", sampled))
        .transform_filter(parts.picked("case"))
        .transform_filter(parts.picked("clock"))
    )
    x = alt.X("sample:Q", title="time of one call", axis=parts.si_axis("s", tickCount=7), scale=alt.Scale(zero=False))
    y = alt.Y("way:N", sort=order, title=None, axis=alt.Axis(grid=True, labelFontWeight=500))
    points = (
        base.transform_flatten(["sample", "round"])
        .transform_calculate(Round="'' + datum.round")
        .mark_point(filled=True, size=16, opacity=0.45)
        .encode(
            x=x,
            y=y,
            yOffset=alt.YOffset("round:O"),
            color=parts.colour(sampled),
            tooltip=[*parts.tooltips("Round"), alt.Tooltip("sample:Q", title="Sample", format=".4s")],
        )
    )
    middle = base.mark_rule(style="whisker").encode(
        x="middle:Q",
        y=alt.Y("way:N", sort=order, bandPosition=0),
        y2=alt.Y2("way:N", bandPosition=1),
        tooltip=parts.tooltips("Median"),
    )
    return (
        alt.layer(points, middle)
        .add_params(parts.pick("case", rows.cases(sampled), "Case"), parts.pick("clock", clocks, "Clock"))
        .properties(
            width=900, height=alt.Step(52, **{"for": "position"}), description="Every timed sample, by kernel and round"
        )
    )
