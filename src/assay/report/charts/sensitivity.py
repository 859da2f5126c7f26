"""How much each tensor depends on its bits: the accuracy lost with only that tensor at a reduced width, one cell
each."""

from collections.abc import Sequence

import altair as alt

from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.search.evidence import SearchEvidence

TITLE = "Sensitivity"
CAPTION = (
    "Points of validation accuracy against the control, with one tensor alone in so many bits and all else in fp32: "
    "the mean over seeds. The darker, the more is lost."
)


def draw(records: Sequence[Record]) -> parts.Chart | None:
    cells = cells_of(records)
    if not cells:
        return None
    cases = list(dict.fromkeys(c["case"] for c in cells))
    tensors = list(dict.fromkeys(c["tensor"] for c in cells))
    drawn = (
        alt.Chart(parts.data("sensitivity", cells))
        .transform_filter(parts.picked("case"))
        .encode(
            x=alt.X("width:O", title="bits", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("tensor:N", title=None, sort=tensors),
        )
    )
    lost = alt.Color("points:Q", title="points", scale=alt.Scale(scheme="blues", reverse=True))
    dark = alt.condition("datum.dark", alt.value("white"), alt.value("#1D2126"))
    return (
        alt.layer(
            drawn.mark_rect().encode(color=lost, tooltip=parts.tooltips("tensor", "shown")),
            drawn.mark_text(fontSize=11).encode(text="shown:N", color=dark),
        )
        .add_params(parts.pick("case", cases, "Model"))
        .properties(width=alt.Step(62), height=alt.Step(26), description="Points of accuracy by tensor and bits")
    )


def cells_of(records: Sequence[Record]) -> list[rows.Row]:
    """Return one row per tensor and width, with the tensors in the order of the model."""
    found: dict[tuple[str, str, int], list[tuple[Record, float]]] = {}
    for record in (r for r in records if r.verb == "search" and r.evidence.get("study") == "sensitivity"):
        e = SearchEvidence.of(record)
        if e.role != "trial" or e.accuracy is None or e.control_accuracy is None or "tensor" not in e.parameters:
            continue
        case = " · ".join([record.kernel, e.format, "quick" if e.quick else "whole"])
        key = case, e.parameters["tensor"], int(e.parameters["width"])
        found.setdefault(key, []).append((record, 100 * (e.accuracy - e.control_accuracy)))
    made = []
    for (case, tensor, width), those in sorted(found.items()):
        points = sum(p for _, p in those) / len(those)
        about = {"case": case, "tensor": tensor, "width": width, "points": points, "shown": f"{points:+.2f}"}
        made.append(rows.common(those[0][0]) | about)
    worst = min((row["points"] for row in made), default=0.0)
    return [row | {"dark": row["points"] < 0.55 * worst} for row in made]
