"""Attention over the sequence length: time and peak memory of every kernel, on logarithmic axes. Drawn from bench's
records of the op with as many queries as keys."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from assay import units
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.theme import BACKEND_COLOURS, OTHER_COLOUR

TITLE = "Attention"
CAPTION = (
    "Median of one call with its 95 % interval over rounds, and the most memory that a call holds beyond its inputs. "
    "The naive form writes down a matrix of seq × seq scores for every head."
)
COLOURS = {
    "naive": BACKEND_COLOURS["torch"],
    "inductor": BACKEND_COLOURS["inductor"],
    "compiled": BACKEND_COLOURS["inductor"],
    "math": BACKEND_COLOURS["numba"],
    "flash": BACKEND_COLOURS["triton"],
    "efficient": BACKEND_COLOURS["cuda"],
    "cudnn": BACKEND_COLOURS["njit"],
    "triton": BACKEND_COLOURS["cupy"],
    "torch": OTHER_COLOUR,
    "njit": "#6A51A3",
}
"""By variant, else by backend. `compiled` is inductor in the records of the study that existed before attention became
an op (results/h200/models/attention.json)."""
MASKS = {"0": "every key seen", "1": "causal"}


def draw(records: Sequence[Record]) -> parts.Chart | None:
    measured = points(records)
    if not measured:
        return None
    masks = [m for m in MASKS.values() if any(r["mask"] == m for r in measured)]
    panels = [what for what in PANELS if any(r[what[0]] for r in measured)]  # memory is measured only on a GPU
    lines = [alt.hconcat(*(_panel(measured, mask, *what) for what in panels), spacing=30) for mask in masks]
    return (
        alt.vconcat(*lines, spacing=26)
        .add_params(parts.pick("case", list(dict.fromkeys(r["case"] for r in measured)), "Case"))
        .properties(description="Time and peak memory of attention over the sequence's length, by kernel")
    )


PANELS = (("seconds", "time of one call", "s"), ("peak", "peak memory of one call", "B"))


def _panel(measured: list[rows.Row], mask: str, field: str, title: str, unit: str) -> Any:
    lengths = alt.Axis(format="d", labelOverlap="greedy", values=sorted({r["seq"] for r in measured}))
    names = list(dict.fromkeys(r["arm"] for r in measured))
    names.sort(key=lambda n: list(COLOURS).index(n) if n in COLOURS else len(COLOURS))
    base = (
        alt.Chart(parts.data("attention", measured))
        .transform_filter(parts.picked("case"))
        .transform_filter(f"datum.mask === '{mask}' && datum.{field} > 0")
        .encode(
            x=alt.X(
                "seq:Q",
                title="length of the sequence",
                axis=lengths,
                scale=alt.Scale(type="log", base=2, nice=False, padding=14),
            ),
            y=alt.Y(
                f"{field}:Q",
                title=title,
                axis=parts.si_axis(unit, log=True),
                scale=alt.Scale(type="log", nice=False, padding=12),
            ),
            color=alt.Color(
                "arm:N",
                scale=alt.Scale(domain=names, range=[COLOURS.get(n, OTHER_COLOUR) for n in names]),
                legend=alt.Legend(title=None, symbolOpacity=1),
            ),
            tooltip=parts.tooltips(
                "Time", "Speedup", "Memory", "Compute", *(["Error"] if "Error" in measured[0] else [])
            ),
        )
    )
    drawn = [base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=48, opacity=1)]
    if field == "seconds":
        drawn.insert(1, base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"))
    return alt.layer(*drawn).properties(width=405, height=260, title=f"{mask}: {title}")


def points(records: Sequence[Record]) -> list[rows.Row]:
    chosen = [r for r in records if r.median and r.evidence.get("study", r.verb) in ("bench", "attention")]
    chosen = [r for r in chosen if r.op == "attention" and {"batch", "heads", "dim"} <= r.point.keys() and _length(r)]
    several = len({rows.device(r) for r in chosen}) > 1
    result = []
    for record in chosen:
        evidence, sizes = record.evidence, record.point
        about = [f"{sizes['batch']} × {sizes['heads']} heads of {sizes['dim']}", sizes["dtype"]]
        median = float(record.median or 0)
        low, high = record.interval or (median, median)
        off = evidence.get("errors")  # only the former study's records have it
        faster = rows.number((evidence.get("speedup") or {}).get("median"))
        result.append(
            rows.common(record)
            | {
                "arm": evidence.get("arm") or _name(record.kernel),
                "seq": int(_length(record)),
                "mask": MASKS.get(sizes.get("causal", ""), ""),
                "case": " · ".join(about + [rows.device(record)] * several),
                "seconds": median,
                "low": low,
                "high": high,
                "peak": rows.number(evidence.get("peak_bytes")),
                "Time": units.between(median, (low, high), "s"),
                "Speedup": f"{units.times(faster)} over {_name(evidence['baseline'])}" if faster else units.NOTHING,
                "Memory": units.si(rows.number(evidence.get("peak_bytes")), "B"),
                "Compute": units.si((rows.number(evidence.get("tflops")) or 0) * 1e12 or None, "FLOP/s"),
            }
            | ({"Error": f"{off['rms']:.3g} rounding units (rms), at worst {off['worst']:.3g}"} if off else {})
        )
    return result


def _length(record: Record) -> str:
    """Return the number of queries and keys (`seq` in the former study's records); empty if they differ."""
    sizes = record.point
    return sizes.get("seq") or (sizes.get("keys", "") if sizes.get("queries") == sizes.get("keys") else "")


def _name(kernel: str) -> str:
    """Return the variant, else the backend; both if this chart has no colour for it."""
    backend, _, variant = kernel.partition("/")[2].partition(":")
    return variant or backend if (variant or backend) in COLOURS else kernel.partition("/")[2]
