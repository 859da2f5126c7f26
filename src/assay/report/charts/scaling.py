"""Time and bandwidth along one axis of a sweep."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts, sweeps

SIZES = """datum.value < 100000 ? format(datum.value, 'd')
    : datum.value % 1048576 === 0 ? datum.value / 1048576 + 'Mi'
    : datum.value % 1024 === 0 ? datum.value / 1024 + 'Ki' : format(datum.value, '~s')"""
"""Formats sizes as people write them: 4096, 256Ki, 16Mi."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    swept = sweeps.along_one(rows.benches(records))
    if not swept:
        return None
    base = alt.Chart(parts.data("sweeps", swept)).transform_filter(parts.picked("sweep"))
    names = sweeps.names(swept, "sweep")
    x = alt.X(
        "at:Q",
        title="size of the swept axis",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(labelExpr=SIZES, labelOverlap="greedy", labelSeparation=6, labelFlush=False),
    )
    variants = list(dict.fromkeys(r["way"].partition(":")[2] for r in swept))
    dashes = [[1, 0], [5, 3], [2, 2], [7, 2, 2, 2], [1, 3]]
    base = base.transform_calculate(variant="split(datum.way, ':')[1] || 'plain'")
    kinds = [v or "plain" for v in variants]
    dash = alt.StrokeDash(
        "variant:N", scale=alt.Scale(domain=kinds, range=[dashes[i % 5] for i in range(len(kinds))]), legend=None
    )
    tint = parts.colour(swept)
    time = alt.Y(
        "seconds:Q",
        title="cold time of one call",
        axis=parts.si_axis("s", log=True),
        scale=alt.Scale(type="log", nice=False, padding=12),
    )
    rate = alt.Y("rate:Q", title="bandwidth", axis=parts.si_axis("B/s", tickCount=5))
    panels = []
    for y, copied in ((time, "copy_seconds"), (rate, "copy_rate")):
        lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=tint, strokeDash=dash, detail="way:N")
        points = base.mark_point(filled=True, size=48, opacity=1).encode(
            x=x, y=y, color=tint, tooltip=parts.tooltips(*parts.TOOLTIP)
        )
        copy = (
            base.transform_filter(f"datum.{copied} > 0")
            .transform_aggregate(copied=f"median({copied})", groupby=["at"])
            .mark_line(style="limit", tooltip="a copy of the same bytes")
            .encode(x=x, y="copied:Q")
        )
        panels.append(alt.layer(copy, lines, points).properties(width=405, height=300))
    return (
        alt.hconcat(*panels, spacing=30)
        .add_params(parts.pick("sweep", names, "Sweep"))
        .properties(description="Time and bandwidth along one axis")
    )
