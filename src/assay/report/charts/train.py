"""The training loss over the steps: runs with kernels inside, before the band of PyTorch's own runs."""

from collections.abc import Sequence
from typing import Any

import altair as alt

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
_POINTS = 60
"""The most points of a curve: with more of them, noise would hide the difference between lines."""


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
    """Return the points of the lines, and of the band behind them."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.verb == "model" and record.workload.startswith("train ") and record.evidence.get("curve"):
            groups.setdefault(_case(record), []).append(record)
    lines: list[rows.Row] = []
    band: list[rows.Row] = []
    for case, group in groups.items():
        plain = [r for r in group if not _swap(r)]
        seeds = {r.evidence["config"]["seed"]: r for r in reversed(plain)}  # of a seed, the first
        curves = [thinned(r.evidence["curve"]) for r in seeds.values()]
        whole = min(map(len, curves), default=0)
        if len(seeds) > 1:
            for at in range(whole):
                losses = [curve[at][1] for curve in curves]
                band.append({"case": case, "step": curves[0][at][0], "low": min(losses), "high": max(losses)})
        alone = [r for r in plain if len(seeds) == 1 or r is not seeds[r.evidence["config"]["seed"]]]
        for record in (*alone, *(r for r in group if _swap(r))):
            lines += _line(case, record)
    return lines, band


def _line(case: str, record: Record) -> list[rows.Row]:
    swap = _swap(record)
    language = next(iter(swap.values())).partition("/")[2].partition(":")[0] if swap else PLAIN
    test = rows.number((record.evidence.get("test") or {}).get("value"))
    about: dict[str, Any] = {
        "case": case,
        "run": language + (", fused" if any("+" in op for op in swap) else ""),
        "colour": BACKEND_COLOURS.get(language, OTHER_COLOUR),
        "Accuracy": f"{test:.2%} on the test split" if test is not None else "",
    }
    return [rows.common(record) | about | {"step": s, "loss": v} for s, v in thinned(record.evidence["curve"])]


def thinned(curve: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the curve with neighbours averaged, each group at its last step."""
    each = -(-len(curve) // _POINTS)
    groups = [curve[i : i + each] for i in range(0, len(curve), each)]
    return [(float(g[-1][0]), sum(float(loss) for _, loss in g) / len(g)) for g in groups]


def _case(record: Record) -> str:
    config = record.evidence["config"]
    data = str(record.evidence["data"]["name"])
    return " · ".join([record.kernel, data, f"{config['epochs']} epochs", rows.device(record)])


def _swap(record: Record) -> dict[str, str]:
    return dict(record.evidence["config"]["swap"])
