"""Op × backend: whether its kernels are correct, and how close they are to their tolerance."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.theme import STATUS_COLOURS, STATUS_SHAPES

CELL = 122, 28
TWO_LINES = 38
"""Height of a cell if some cell has a second line: the number of checks that were skipped beside others."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    checks = [r for r in rows.checks(records) if r["op"]]
    if not checks:
        return None
    order = parts.backends(checks)
    present = [s for s in rows.SEVERITY if any(r["status"] == s for r in checks)]
    base = (
        alt.Chart(parts.data("checks", checks))
        .transform_aggregate(
            worst="argmax(weight)",
            share="max(share)",
            skipped="sum(skipped)",
            workloads="sum(workloads)",
            checks="count()",
            kernels="distinct(kernel)",
            groupby=["op", "backend"],
        )
        .transform_calculate(
            status="datum.worst.status",
            kernel="datum.worst.kernel",
            workload="datum.worst.workload",
            reason="datum.worst.reason",
            says="datum.worst.status != 'pass' ? datum.worst.status : datum.share == null ? 'pass' : "
            "format(100 * datum.share, '.0f') + '\u00a0%'",
            beside="datum.worst.status == 'skipped' ? 0 : datum.skipped",
            covers="datum.kernels + (datum.kernels == 1 ? ' kernel, ' : ' kernels, ') + datum.checks + "
            "(datum.checks == 1 ? ' check, ' : ' checks, ') + (datum.skipped ? datum.skipped + ' skipped, ' : '') + "
            "datum.workloads + ' workloads'",
        )
        .encode(
            x=alt.X(
                "backend:N",
                sort=order,
                title=None,
                scale=alt.Scale(paddingInner=0.03, paddingOuter=0),
                axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
            ),
            y=alt.Y("op:N", title=None, sort="ascending", scale=alt.Scale(paddingInner=0.1, paddingOuter=0)),
            tooltip=[
                alt.Tooltip("op:N", title="Op"),
                alt.Tooltip("covers:N", title="Covers"),
                alt.Tooltip("kernel:N", title="Worst"),
                alt.Tooltip("workload:N", title="Where"),
                alt.Tooltip("reason:N", title="Verdict"),
            ],
        )
    )
    tint = alt.Scale(domain=present, range=[STATUS_COLOURS[s] for s in present])
    outline = alt.Scale(domain=present, range=[STATUS_SHAPES[s] for s in present])
    legend = alt.Legend(title=None, symbolSize=90, symbolOpacity=1)
    cells = base.mark_rect(fillOpacity=0.11, cornerRadius=3).encode(
        color=alt.Color("status:N", scale=tint, legend=legend)
    )
    marks = base.mark_point(filled=True, size=85, xOffset=-24, opacity=1, strokeWidth=0).encode(
        color=alt.Color("status:N", scale=tint, legend=legend),
        shape=alt.Shape("status:N", scale=outline, legend=legend),
    )
    one_line, two_lines = base.transform_filter("!datum.beside"), base.transform_filter("datum.beside")
    words = one_line.mark_text(align="left", xOffset=-10).encode(text="says:N")
    upper = two_lines.mark_text(align="left", xOffset=-10, yOffset=-7).encode(text="says:N")
    lower = two_lines.transform_calculate(left_out="datum.beside + ' skipped'")
    lower = lower.mark_text(align="left", xOffset=-10, yOffset=8, fontSize=10).encode(text="left_out:N")
    chart = cells + marks + words + upper + lower
    return chart.properties(
        width=alt.Step(CELL[0]),
        height=alt.Step(TWO_LINES if _mixed(checks) else CELL[1]),
        description="Check results by op and backend",
    )


def _mixed(checks: Sequence[rows.Row]) -> bool:
    """Return whether a cell has both checks that were skipped and others."""
    skipped = {(r["op"], r["backend"]) for r in checks if r["skipped"]}
    return any((r["op"], r["backend"]) in skipped for r in checks if not r["skipped"])
