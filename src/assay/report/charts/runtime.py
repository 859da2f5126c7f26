"""Time of one call and speedup over the baseline, as bars with their intervals."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts

STEP = 24
TEXT = "halo", "says"
"""Styles in which a number is drawn, one over the other: the first is a background that hides lines behind it."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    benches = rows.benches(records)
    if not benches:
        return None
    order = alt.EncodingSortField(field="seconds", op="min", order="ascending")
    base = (
        alt.Chart(parts.data("bench", benches))
        .transform_filter(parts.picked("case"))
        .encode(tooltip=parts.tooltips(*parts.TOOLTIP))
    )
    named = alt.Y("way:N", sort=order, title=None, axis=alt.Axis(labelFontWeight=500))
    mute = alt.Y("way:N", sort=order, title=None, axis=alt.Axis(labels=False))
    tint = parts.colour(benches)

    bars = base.mark_bar(height={"band": 0.66}).encode(
        x=alt.X("seconds:Q", title="cold time of one call", axis=parts.si_axis("s", tickCount=5)), y=named, color=tint
    )
    whiskers = base.mark_rule(style="whisker").encode(x="low:Q", x2="high:Q", y=named)
    halo, says = (
        base.mark_text(style=style, align="left", dx=8).encode(x="high:Q", y=named, text="Label:N") for style in TEXT
    )
    floor = (
        base.transform_filter("datum.limit_seconds > 0")
        .transform_aggregate(limit_seconds="min(limit_seconds)", model="min(model)", groupby=["case"])
        .mark_rule(style="limit")
        .encode(x="limit_seconds:Q", tooltip=[alt.Tooltip("model:N", title="Floor by")])
    )
    floors = [floor] if any(r["limit_seconds"] for r in benches) else []
    left = alt.layer(bars, *floors, whiskers, halo, says).properties(width=480, height=alt.Step(STEP))

    times = alt.Axis(labelExpr="datum.label + '×'", tickCount=5)
    measured = base.transform_filter("datum.speedup > 0")
    bars = measured.mark_bar(height={"band": 0.66}).encode(
        x=alt.X("speedup:Q", title="speedup over the baseline", axis=times), y=mute, color=tint
    )
    whiskers = measured.mark_rule(style="whisker").encode(x="speedup_low:Q", x2="speedup_high:Q", y=mute)
    halo, says = (
        measured.mark_text(style=style, align="left", dx=8).encode(x="speedup_high:Q", y=mute, text="Faster:N")
        for style in TEXT
    )
    one = base.transform_aggregate(n="count()", groupby=["case"]).mark_rule(style="one").encode(x=alt.datum(1))
    right = alt.layer(bars, one, whiskers, halo, says).properties(width=340, height=alt.Step(STEP))
    chart = left if not any(r["speedup"] for r in benches) else alt.hconcat(left, right, spacing=28)
    return chart.add_params(parts.pick("case", rows.cases(benches), "Case")).properties(
        description="Cold time of one call and speedup over the baseline, per kernel"
    )
