"""Bandwidth relative to a copy of the same bytes, a yardstick that is the same for every memory-bound op."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts


def draw(records: Sequence[Record]) -> parts.Chart | None:
    benches = [r for r in rows.benches(records) if r["copy_share"]]
    if not benches:
        return None
    order = parts.backends(benches)
    base = alt.Chart(parts.data("bench", benches))
    top = max(1.05, *(r["copy_share"] for r in benches))
    x = alt.X(
        "copy_share:Q",
        title="bandwidth, as a share of the copy's",
        axis=parts.share_axis(tickCount=6),
        scale=alt.Scale(domain=[0, round(top + 0.049, 1)], nice=False),
    )
    y = alt.Y("op:N", title=None, sort="ascending", axis=alt.Axis(grid=True, tickBand="extent"))
    points = base.mark_point(filled=True, size=42, opacity=0.75).encode(
        x=x,
        y=y,
        yOffset=alt.YOffset("backend:N", sort=order),
        color=parts.colour(benches),
        tooltip=parts.tooltips("Share of a copy", "Bandwidth", "Time", "Speedup"),
    )
    copy = base.transform_aggregate(n="count()").mark_rule(style="limit", tooltip=None).encode(x=alt.XDatum(1))
    step = max(26, 7 * len(order) + 8)
    return alt.layer(copy, points).properties(
        width=900, height=alt.Step(step, **{"for": "position"}), description="Bandwidth as a share of a copy, by op"
    )
