"""Two axes of a sweep at once: where a kernel is near its limit and where it is not."""

from collections.abc import Sequence

import altair as alt

from assay import units
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts, sweeps

STEP = 52
MEASURES = {"limit_share": "share of the limit", "copy_share": "share of a copy", "speedup": "speedup"}


def draw(records: Sequence[Record]) -> parts.Chart | None:
    swept = sweeps.over_two(rows.benches(records))
    measure = next((m for m in MEASURES if any(r[m] is not None for r in swept)), None)
    if not swept or measure is None:
        return None
    swept = [r for r in swept if r[measure] is not None]
    shares = measure != "speedup"
    top = 1.0 if shares else max(r[measure] for r in swept)
    swept = [r | {"Cell": units.share(r[measure]) if shares else units.times(r[measure])} for r in swept]
    wide = max(len({r["across"] for r in swept if r["plane"] == p}) for p in {r["plane"] for r in swept})
    ways = sorted({r["way"] for r in swept}, key=lambda w: (parts.backends(swept).index(w.partition(":")[0]), w))
    base = (
        alt.Chart(parts.data("planes", swept))
        .transform_filter(parts.picked("plane"))
        .encode(
            x=alt.X(
                "across:O", title=_axis(swept, "across_axis"), axis=alt.Axis(labelAngle=0, domain=False, ticks=False)
            ),
            y=alt.Y("down:O", title=_axis(swept, "down_axis"), sort="descending"),
            tooltip=parts.tooltips(*parts.TOOLTIP),
        )
    )
    legend = alt.Legend(
        title=MEASURES[measure],
        gradientLength=220,
        gradientThickness=10,
        values=[0, 0.25, 0.5, 0.75, 1] if shares else alt.Undefined,
        labelExpr=parts.PERCENT if shares else "datum.label + '×'",
    )
    scale = alt.Scale(scheme="cividis", domain=[0, top], clamp=True)
    cells = base.mark_rect(cornerRadius=2).encode(color=alt.Color(f"{measure}:Q", scale=scale, legend=legend))
    words = base.mark_text(fontSize=11).encode(
        text="Cell:N",
        color=alt.condition(f"datum.{measure} > {0.55 * top}", alt.value("#111418"), alt.value("#ffffff")),
    )
    return (
        alt.layer(cells, words)
        .properties(width=alt.Step(STEP), height=alt.Step(30))
        .facet(facet=alt.Facet("way:N", title=None, sort=ways), columns=max(1, 960 // (STEP * wide + 24)), spacing=24)
        .add_params(parts.pick("plane", sweeps.names(swept, "plane"), "Sweep"))
        .properties(description=f"{MEASURES[measure]} over two axes, per kernel")
    )


def _axis(swept: Sequence[rows.Row], field: str) -> str:
    return " or ".join(dict.fromkeys(r[field] for r in swept))
