"""The cost of accuracy: accuracy over true bits for each number format, and the Pareto fronts of all models."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from assay.compress.evidence import CompressEvidence
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.search.evidence import SearchEvidence

FORMATS_TITLE = "Number formats"
FORMATS_CAPTION = (
    "Accuracy on the test split over the bits that a weight takes in the file, scales and what was left alone "
    "included: one line for each format. A point is the mean over seeds."
)
PARETO_TITLE = "Accuracy against size"
PARETO_CAPTION = (
    "Every compressed model and every finished trial: accuracy on the validation split, by which models are chosen, "
    "over true bits. The line joins those that no other model beats in both."
)
LATENCY_TITLE = "Accuracy against latency"
LATENCY_CAPTION = (
    "The same over the measured time of a forward pass, for models that a packed kernel computes, and for trials whose "
    "latency was a goal."
)
_BITS = "bits of a weight, all included"


@dataclass(frozen=True)
class _Model:
    record: Record
    case: str
    how: str
    accuracy: float
    bits: int
    latency: float | None


def draw_formats(records: Sequence[Record]) -> parts.Chart | None:
    points = formats(records)
    if len({p["format"] for p in points}) < 2:
        return None
    cases = list(dict.fromkeys(p["case"] for p in points))
    chosen = alt.Chart(parts.data("formats", points)).transform_filter(parts.picked("case"))
    across = alt.X("bits:Q", title=_BITS, scale=alt.Scale(type="log", nice=False, padding=12))
    up = alt.Y("accuracy:Q", title="accuracy", axis=parts.accuracy_axis(), scale=alt.Scale(zero=False, padding=8))
    drawn = chosen.encode(x=across, y=up, color=alt.Color("format:N", legend=alt.Legend(title=None, symbolOpacity=1)))
    fields = {"format": "Format", "shown": "Accuracy", "each": "Bits of a weight"}
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]
    return (
        alt.layer(drawn.mark_line(strokeWidth=1.8), drawn.mark_point(filled=True, size=55).encode(tooltip=tips))
        .add_params(parts.pick("case", cases, "Case"))
        .properties(width=620, height=300, description="Accuracy over bits, by number format")
    )


def formats(records: Sequence[Record]) -> list[rows.Row]:
    """Return one row per format and width, with means over seeds."""
    found: dict[tuple[str, str, str], list[tuple[Record, CompressEvidence]]] = {}
    for record in (r for r in records if r.verb == "compress"):
        e = CompressEvidence.of(record)
        if e.format and e.accuracy is not None and e.bits and e.base_bits:
            family = ":".join("W" if word == str(e.width) else word for word in e.format.split(":"))
            case = " · ".join([record.kernel, e.method, "+".join(e.parts), "quick" if e.quick else "whole"])
            found.setdefault((case, family, e.format), []).append((record, e))
    made = []
    for (case, family, _), those in found.items():
        share = sum(e.accuracy or 0.0 for _, e in those) / len(those)
        each = sum(32 * (e.bits or 0) / (e.base_bits or 1) for _, e in those) / len(those)
        about = {"case": case, "format": family, "accuracy": share, "bits": each}
        made.append(rows.common(those[0][0]) | about | {"shown": f"{share:.2%}", "each": f"{each:.2f}"})
    return sorted(made, key=lambda row: (row["format"], row["bits"]))


def draw_pareto(records: Sequence[Record]) -> parts.Chart | None:
    return _front(models(records), "bits", "size of the model", "bit")


def draw_latency(records: Sequence[Record]) -> parts.Chart | None:
    return _front([m for m in models(records) if m.latency], "latency", "time of a forward pass", "s")


def models(records: Sequence[Record]) -> list[_Model]:
    """Return the models that were judged on the validation split."""
    found = []
    for record in records:
        if record.verb == "compress":
            e = CompressEvidence.of(record)
            if e.validation is not None and e.bits:
                case = f"{record.kernel}{' · quick' if e.quick else ''}"
                found.append(_Model(record, case, e.method, e.validation, e.bits, e.latency))
        elif record.verb == "search":
            s = SearchEvidence.of(record)
            if s.role in ("trial", "control") and s.accuracy is not None and s.bits:
                case = f"{record.kernel}{' · quick' if s.quick else ''}"
                how = s.role if s.role == "control" else str(s.sampler.get("name") or s.suggested_by or s.role)
                found.append(_Model(record, case, how, s.accuracy, s.bits, s.latency))
    return found


def _front(found: Sequence[_Model], field: str, title: str, unit: str) -> parts.Chart | None:
    points = [_point(m, field, m in _best([o for o in found if o.case == m.case], field)) for m in found]
    if len(points) < 2:
        return None
    cases = list(dict.fromkeys(p["case"] for p in points))
    chosen = alt.Chart(parts.data(f"front-{field}", points)).transform_filter(parts.picked("case"))
    scale = alt.Scale(type="log", nice=False, padding=12)
    across = alt.X("cost:Q", title=title, axis=parts.si_axis(unit, log=True), scale=scale)
    up = alt.Y("accuracy:Q", title="validation accuracy", axis=parts.accuracy_axis(), scale=alt.Scale(zero=False))
    key = alt.Color("how:N", legend=alt.Legend(title=None, symbolOpacity=1))
    line = chosen.transform_filter("datum.front").mark_line(color="#8A9099", interpolate="step-after", strokeWidth=1.4)
    return (
        alt.layer(
            line.encode(x=across, y=up),
            chosen.mark_point(filled=True, size=50, opacity=0.75).encode(
                x=across, y=up, color=key, tooltip=parts.tooltips("how", "shown")
            ),
        )
        .add_params(parts.pick("case", cases, "Model"))
        .properties(width=620, height=300, description=f"Validation accuracy over {title}")
    )


def _best(found: Sequence[_Model], field: str) -> list[_Model]:
    """Return the models that no other beats in both accuracy and cost."""

    def cost(m: _Model) -> float:
        return float(getattr(m, field))

    return [
        m
        for m in found
        if not any(
            (o.accuracy >= m.accuracy and cost(o) < cost(m)) or (o.accuracy > m.accuracy and cost(o) <= cost(m))
            for o in found
        )
    ]


def _point(m: _Model, field: str, front: bool) -> rows.Row:
    about = {"case": m.case, "how": m.how, "accuracy": m.accuracy, "cost": float(getattr(m, field)), "front": front}
    return rows.common(m.record) | about | {"shown": f"{m.accuracy:.2%}"}
