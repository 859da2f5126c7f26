"""Operations per second over operations per byte, under measured ceilings."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from assay import units
from assay.record import Record
from assay.report import machine, rows
from assay.report.charts import parts
from assay.report.rows import Row

UNDER, LEFT, OVER = (
    {"align": a, "dx": x, "dy": y} for a, x, y in (("left", 6, 14), ("right", -10, -9), ("right", 0, -8))
)
"""Offsets of a ceiling's name at its right end, so that it covers no line."""
NEAR = 0.25
"""A peak is drawn if some point reaches at least this share of its ridge: tensor cores do not limit an addition."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    benches = [r for r in rows.benches(records) if r["intensity"] and r["flops"]]
    if not benches:
        return None
    places = sorted({r["device"] for r in benches}, key=lambda d: (-sum(r["device"] == d for r in benches), d))
    lines = [line for place in places for line in ceilings(records, [r for r in benches if r["device"] == place])]
    base = alt.Chart(parts.data("bench", benches)).transform_filter(parts.picked("device"))
    x = alt.X(
        "intensity:Q",
        title="operations per byte",
        axis=parts.si_axis("", log=True),
        scale=alt.Scale(type="log", nice=False),
    )
    y = alt.Y(
        "flops:Q",
        title="operations per second",
        axis=parts.si_axis("FLOP/s", log=True),
        scale=alt.Scale(type="log", nice=False, padding=16),
    )
    shapes = {d: parts.DTYPE_SHAPES.get(d, "cross") for d in sorted({r["dtype"] for r in benches})}
    points = base.mark_point(filled=True, size=60, opacity=0.8).encode(
        x=x,
        y=y,
        color=parts.colour(benches),
        shape=alt.Shape(
            "dtype:N",
            scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
            legend=alt.Legend(title=None, symbolFillColor="#8A9099"),
        ),
        tooltip=parts.tooltips(
            "Bandwidth", "Compute", "Share of the limit", "Share of a copy", "Intensity", "Time", "Notes", "model"
        ),
    )
    layers: list[Any] = []
    if lines:
        roof = alt.Chart(parts.data("ceilings", lines)).transform_filter(parts.picked("device"))
        layers.append(
            roof.mark_line(style="ceiling").encode(
                x="intensity:Q",
                y="flops:Q",
                detail="name:N",
                strokeDash=alt.StrokeDash("dash:N", scale=None, legend=None),
                tooltip=[alt.Tooltip("label:N", title="Ceiling"), alt.Tooltip("model:N", title="Model")],
            )
        )
        words = {key: alt.ExprRef(f"datum.{key}") for key in ("align", "dx", "dy")}
        named = roof.transform_filter("datum.end").mark_text(style="limit-label", **words)  # type: ignore[arg-type]
        layers.append(named.encode(x="intensity:Q", y="flops:Q", text="label:N"))
    models = sorted({line["model"] for line in lines})
    subtitle = (
        "Ceilings: " + "; ".join(models) if models else "No ceiling: neither a machine model nor a copy was measured."
    )
    return (
        alt.layer(*layers, points)
        .add_params(parts.pick("device", places, "Device"))
        .properties(
            width=860, height=420, title=alt.Title(subtitle, fontWeight="normal", fontSize=12), description="Roofline"
        )
    )


def ceilings(records: Sequence[Record], points: Sequence[Row]) -> list[Row]:
    """Return the end points of one device's ceilings: the streams and peaks that its model sets as limits (more lines
    would hide the points) or, without a model, the best copy among its benches."""
    device = points[0]["device"]
    model = machine.model_of(records, device)
    if model:
        about = model.name
        dram = {f"DRAM {kind}": model.fastest(f"dram.{kind}") or 0.0 for kind in ("copy", "read", "write")}
        fastest = max(dram, key=lambda kind: dram[kind])
        streams = {fastest: dram[fastest], "L2 read": model.fastest("l2.read") or 0.0}
        peaks = {"fp32 vector": model.peak("fp32") or 0.0, "bf16 tensor": model.peak("bf16", tensor=True) or 0.0}
        streams, peaks = ({n: v for n, v in given.items() if v > 0} for given in (streams, peaks))
    else:
        best = max((r["copy_rate"] or 0 for r in points), default=0)
        about = f"{device}, the fastest copy timed beside the kernels (no machine model)"
        streams, peaks = ({"copy": best} if best else {}), {}
    if not streams:
        return []
    slowest = min(streams.values())
    right = max(p["intensity"] for p in points)
    peaks = {n: p for n, p in peaks.items() if right >= NEAR * p / slowest or n == next(iter(peaks))}
    left = min(p["intensity"] for p in points) / 2
    right = max([right * 2, *(3 * p / slowest for p in peaks.values())])
    top = max(peaks.values(), default=None)
    lines: list[Row] = []
    for i, (name, rate) in enumerate(streams.items()):
        end = min(right, top / rate) if top else right
        label = f"{name} {units.si(rate, 'B/s', 3)}"
        about_line = {"name": name, "label": label, "dash": [2, 3] if i else [8, 0]} | (LEFT if i or not top else UNDER)
        lines += [about_line | {"intensity": x, "flops": x * rate, "end": x == end} for x in (left, end)]
    for name, peak in peaks.items():
        start = peak / max(streams.values())
        label = f"{name} {units.si(peak, 'FLOP/s', 3)}"
        about_line = {"name": name, "label": label, "dash": [8, 0]} | OVER
        lines += [about_line | {"intensity": x, "flops": peak, "end": x == right} for x in (start, right)]
    return [line | {"device": device, "model": about} for line in lines]
