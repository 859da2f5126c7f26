"""The training loss over the steps: runs with kernels swapped in, over the band of PyTorch's own runs."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from assay.models.studies.train.evidence import TrainEvidence
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.theme import BACKEND_COLOURS, OTHER_COLOUR

TITLE = "Training"
CAPTION = (
    "Mean training loss since the point before. The band is spanned by PyTorch's own runs from different seeds; a line "
    "is a run with kernels swapped in, forward and backward, from the first of these seeds (dashed: two ops fused into "
    "one kernel). Grey: PyTorch's second run of that seed, or its only one."
)
PLAIN = "torch"
One = tuple[Record, TrainEvidence]
_POINTS = 60
"""The most points of a curve; with more, noise would hide the difference between lines."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    lines, band = points(records)
    if not lines and not band:
        return None
    shown = alt.Scale(type="log", nice=False, padding=6)
    steps, loss = alt.X("step:Q", title="steps", axis=alt.Axis(format=",d", tickCount=8)), "training loss"
    key = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1)
    names = list(dict.fromkeys(r["run"] for r in lines))
    colours = [next(r["colour"] for r in lines if r["run"] == n) for n in names]
    dashes = [[6, 3] if "fused" in n else [1, 0] for n in names]
    filtered = parts.picked("case")
    area = (
        alt.Chart(parts.data("band", band))
        .transform_filter(filtered)
        .mark_area(opacity=0.28, color="#8A9099")
        .encode(x=steps, y=alt.Y("low:Q", title=loss, scale=shown), y2="high:Q")
    )
    curves = (
        alt.Chart(parts.data("curves", lines))
        .transform_filter(filtered)
        .mark_line(strokeWidth=1.5)
        .encode(
            x=steps,
            y=alt.Y("loss:Q", title=loss, scale=shown),
            color=alt.Color("run:N", scale=alt.Scale(domain=names, range=colours), legend=key),
            strokeDash=alt.StrokeDash("run:N", scale=alt.Scale(domain=names, range=dashes), legend=None),
            tooltip=parts.tooltips("run", "Accuracy"),
        )
    )
    cases = list(dict.fromkeys(r["case"] for r in (*band, *lines)))
    return (
        alt.layer(area, curves)
        .add_params(parts.pick("case", cases, "Case"))
        .properties(width=820, height=300, description="Training loss over steps, by kernels")
    )


def points(records: Sequence[Record]) -> tuple[list[rows.Row], list[rows.Row]]:
    """Return the rows of the lines, and of the band behind them."""
    groups: dict[str, list[One]] = {}
    for record in records:
        if record.verb == "model" and record.workload.startswith("train ") and record.evidence.get("curve"):
            one = record, TrainEvidence.of(record)
            groups.setdefault(_case(one), []).append(one)
    lines: list[rows.Row] = []
    band: list[rows.Row] = []
    for case, runs in groups.items():
        plain = [one for one in runs if not one[1].config.swap]
        seeds = {one[1].config.seed: one for one in reversed(plain)}  # the first run of each seed
        curves = [thinned(evidence.curve) for _, evidence in seeds.values()]
        whole = min(map(len, curves), default=0)
        if len(seeds) > 1:
            for at in range(whole):
                losses = [curve[at][1] for curve in curves]
                band.append({"case": case, "step": curves[0][at][0], "low": min(losses), "high": max(losses)})
        alone = [one for one in plain if len(seeds) == 1 or one is not seeds[one[1].config.seed]]
        for one in (*alone, *(one for one in runs if one[1].config.swap)):
            lines += _line(case, one)
    return lines, band


def _line(case: str, one: One) -> list[rows.Row]:
    record, evidence = one
    swap = evidence.config.swap
    language = next(iter(swap.values())).partition("/")[2].partition(":")[0] if swap else PLAIN
    about: dict[str, Any] = {
        "case": case,
        "run": language + (", fused" if any("+" in op for op in swap) else ""),
        "colour": BACKEND_COLOURS.get(language, OTHER_COLOUR),
        "Accuracy": f"{evidence.test.value:.2%} on the test split" if evidence.test else "",
    }
    return [rows.common(record) | about | {"step": s, "loss": v} for s, v in thinned(evidence.curve)]


def thinned(curve: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the curve with consecutive points averaged, each group at its last step."""
    each = max(1, -(-len(curve) // _POINTS))
    groups = [curve[i : i + each] for i in range(0, len(curve), each)]
    return [(float(g[-1][0]), sum(float(loss) for _, loss in g) / len(g)) for g in groups]


def _case(one: One) -> str:
    record, evidence = one
    data = evidence.data.name if evidence.data else evidence.config.data
    return " · ".join([record.kernel, data, f"{evidence.config.epochs} epochs", rows.device(record)])
