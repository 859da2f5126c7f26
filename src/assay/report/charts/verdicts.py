"""Op × backend: whether its kernels are correct, and how close they are to their tolerance."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.theme import STATUS_COLOURS, STATUS_SHAPES

CELL = 122, 28


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
            rank="max(rank)",
            share="max(share)",
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
            says="datum.rank > 0 ? datum.worst.status : datum.share == null ? 'pass' : "
            "format(100 * datum.share, '.0f') + '\u00a0%'",
            covers="datum.kernels + (datum.kernels == 1 ? ' kernel, ' : ' kernels, ') + datum.checks + "
            "(datum.checks == 1 ? ' check, ' : ' checks, ') + datum.workloads + ' workloads'",
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
    words = base.mark_text(align="left", xOffset=-10).encode(text="says:N")
    chart = cells + marks + words
    return chart.properties(
        width=alt.Step(CELL[0]), height=alt.Step(CELL[1]), description="Check results by op and backend"
    )
