"""Accuracy over width and over sparsity: one line per method, with a band over seeds, next to the control."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from assay.compress.evidence import CompressEvidence
from assay.compress.planning import CONTROL
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts

QUANTIZE, PRUNE = "quantize", "prune"
TITLES = {QUANTIZE: "Fewer bits", PRUNE: "Fewer weights"}
CAPTIONS = {
    QUANTIZE: "Accuracy on the test split over the width of a number: quantised after training (ptq) and trained on in "
    "the format (qat). Grey: the control, trained on for the same epochs without the format. A point is the mean over "
    "seeds, the band spans them.",
    PRUNE: "Accuracy on the test split over the share of weights, or activations, that are dropped: the smallest (l1) "
    "or any (random). Grey: the control, trained on for the same epochs without pruning. A point is the mean over "
    "seeds, the band spans them.",
}
_AXES = {QUANTIZE: "bits of a number", PRUNE: "per cent dropped"}
_COLOURS = {"ptq": "#C4622D", "qat": "#2F6DB3", "l1": "#2F6DB3", "random": "#C4622D", CONTROL: "#8A9099"}


def draw_quantized(records: Sequence[Record]) -> parts.Chart | None:
    return _draw(records, QUANTIZE)


def draw_pruned(records: Sequence[Record]) -> parts.Chart | None:
    return _draw(records, PRUNE)


def _draw(records: Sequence[Record], study: str) -> parts.Chart | None:
    points = curves(records, study)
    if not any(p["method"] != CONTROL for p in points):
        return None
    methods = [m for m in _COLOURS if any(p["method"] == m for p in points)]
    scale = alt.Scale(domain=methods, range=[_COLOURS[m] for m in methods])
    colour = alt.Color("method:N", scale=scale, legend=alt.Legend(title=None, symbolOpacity=1))
    ticks = sorted({p["at"] for p in points})
    across = alt.X(
        "at:Q",
        title=_AXES[study],
        axis=alt.Axis(values=ticks, format="g", labelOverlap=True),
        scale=alt.Scale(nice=False, zero=False, padding=12),
    )
    height: dict[str, Any] = {
        "title": "accuracy",
        "axis": parts.accuracy_axis(),
        "scale": alt.Scale(zero=False, padding=8),
    }
    up = alt.Y("mean:Q", **height)
    chosen = alt.Chart(parts.data(f"{study}-curves", points)).transform_filter(parts.picked("case"))
    lines = chosen.encode(x=across, color=colour)
    cases = list(dict.fromkeys(p["case"] for p in points))
    return (
        alt.layer(
            lines.mark_area(opacity=0.2, clip=True).encode(y=alt.Y("low:Q", **height), y2="high:Q"),
            lines.mark_line(strokeWidth=1.8).encode(
                y=up, strokeDash=alt.condition(f"datum.method === '{CONTROL}'", alt.value([5, 4]), alt.value([1, 0]))
            ),
            lines.mark_point(filled=True, size=55).encode(y=up, tooltip=_tips()),
        )
        .add_params(parts.pick("case", cases, "Case"))
        .properties(width=620, height=300, description=f"Accuracy over {_AXES[study]}, by method")
    )


def _tips() -> list[alt.Tooltip]:
    fields = {"method": "Method", "shown": "Accuracy", "seeds": "Seeds", "smaller": "Smaller"}
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def curves(records: Sequence[Record], study: str) -> list[rows.Row]:
    """Return one row per method and position on the axis: the mean over seeds, and their range."""
    found: dict[tuple[str, str, float | None], list[tuple[Record, CompressEvidence]]] = {}
    for record in (r for r in records if r.verb == "compress" and r.evidence.get("study") == study):
        evidence = CompressEvidence.of(record)
        if evidence.accuracy is not None:
            at = evidence.width if study == QUANTIZE else evidence.sparsity
            found.setdefault((_case(record, evidence), evidence.method, at), []).append((record, evidence))
    made: list[rows.Row] = []
    for case in dict.fromkeys(case for case, method, _ in found if method != CONTROL):
        places = sorted({at for c, _, at in found if c == case and at is not None})
        for (_, method, at), those in ((k, v) for k, v in found.items() if k[0] == case and k[2] is not None):
            made.append(_row(case, method, float(at or 0), those))
        control = next((v for k, v in found.items() if k[1] == CONTROL and case.startswith(k[0])), None)
        if control and places:
            made += [_row(case, CONTROL, float(at), control) for at in dict.fromkeys((places[0], places[-1]))]
    return sorted(made, key=lambda row: (row["method"], row["at"]))


def _row(case: str, method: str, at: float, those: Sequence[tuple[Record, CompressEvidence]]) -> rows.Row:
    shares = [e.accuracy or 0.0 for _, e in those]
    bits = [(e.base_bits or 0) / e.bits for _, e in those if e.bits]
    mean = sum(shares) / len(shares)
    row: dict[str, Any] = rows.common(those[0][0]) | {
        "case": case,
        "method": method,
        "at": at,
        "mean": mean,
        "low": min(shares),
        "high": max(shares),
        "shown": f"{mean:.2%}",
        "seeds": len({e.seed for _, e in those}),
        "smaller": f"{max(bits, default=1):.2f} ×",
    }
    return row


def _case(record: Record, evidence: CompressEvidence) -> str:
    """Return the curve's case. A control's is a prefix of it, since a control has no format."""
    beginning = " · ".join([record.kernel, evidence.data, rows.device(record), "quick" if evidence.quick else "whole"])
    if evidence.method == CONTROL:
        return beginning
    family = ":".join("W" if word == str(evidence.width) else word for word in evidence.format.split(":"))
    how = family if evidence.format else evidence.scope
    return f"{beginning} · {how} · {'+'.join(evidence.parts)}"
