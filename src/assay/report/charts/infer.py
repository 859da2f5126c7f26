"""Kernels inside a model: latency and gain over batch sizes, and what each site saves alone, in the model, and in the
end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assay import units
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.theme import BACKEND_COLOURS, OTHER_COLOUR

TITLE = "Kernels in a model"
CAPTION = (
    "Above: median latency of one forward pass with its 95 % interval, by arm; a dashed line is another design in the "
    "same language. Between: the gain over torch, which took turns with the variant in its process; it holds where the "
    "latencies of two processes, of which one had a slower host, do not compare. Below: seconds that a site saves in "
    "one pass against PyTorch's own (to the left: loses), by its times alone and by its time in the model, beside what "
    "the whole pass was seen to save."
)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Of the variants that share a language, in the order they come."""
ALL, SEEN = "all sites", "the whole pass, seen"
BOTH = " + "
"""Between the modules of a site that has two."""
WHOLE = 24
"""A name of so many characters is shown whole."""
WAYS = {"alone, cold": "#56B4E9", "alone, hot": "#0072B2", "in the model": "#E69F00", SEEN: "#009E73"}
SLOTS = {"alone, cold": 0, "alone, hot": 1, "in the model": 2, SEEN: 1}
"""Which of a site's three bars; a pass has one, in the middle."""

_KINDS = {"alone, cold": "cold", "alone, hot": "hot"}


def draw(records: Sequence[Record]) -> parts.Chart | None:
    import altair as alt

    mine = [r for r in records if r.verb == "model" and r.evidence.get("study") == "infer" and r.median]
    points = [_point(r, _case(r, mine)) for r in mine]
    if not points:
        return None
    arms = list(dict.fromkeys(p["arm"] for p in points))
    drawn: list[Any] = [alt.hconcat(*(_latency(points, arm) for arm in arms), spacing=26)]
    if gains := [p for p in points if "gain" in p]:
        drawn.append(alt.hconcat(*(_gain(points, gains, arm) for arm in arms), spacing=26))
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in mine:
        groups.setdefault((_case(record, mine), str(record.evidence["variant"])), []).append(record)
    if saved := [row for (case, _), group in groups.items() for row in savings(group, case)]:
        panels = [_savings(saved, name) for name in dict.fromkeys(row["variant"] for row in saved)]
        drawn.append(alt.concat(*panels, columns=3, spacing=26))
    return (
        alt.vconcat(*drawn, spacing=30)
        .resolve_scale(color="independent", strokeDash="independent")
        .add_params(parts.pick("case", list(dict.fromkeys(p["case"] for p in points)), "Model"))
        .properties(description="Latency of a model by variant, and what each swapped site saves")
    )


def _case(record: Record, among: Sequence[Record]) -> str:
    several = len({rows.device(r) for r in among}) > 1
    return " · ".join([record.kernel, str(record.evidence["dtype"]), *[rows.device(record)] * several])


def _point(record: Record, case: str) -> rows.Row:
    told, median = record.evidence, float(record.median or 0)
    low, high = record.interval or (median, median)
    speedup = told.get("speedup") or {}
    faster = rows.number(speedup.get("median"))
    gain = {"gain": faster, "least": speedup["interval"][0], "most": speedup["interval"][1]} if faster else {}
    variant, held = str(told["variant"]), told.get("peak_bytes") or {}
    return rows.common(record) | {
        "case": case,
        "variant": variant,
        "backend": _language(variant),
        "arm": str(told["arm"]),
        "batch": int(told["batch"]),
        "seconds": median,
        "low": low,
        "high": high,
        "Variant": variant,
        "Latency": units.between(median, (low, high), "s"),
        "Throughput": units.si(rows.number(told.get("throughput")), "1/s"),
        "Gain": f"{units.times(faster)} over torch" if faster else units.NOTHING,
        "Memory": units.si(rows.number(held.get("variant" if told["rules"] else "torch")), "B"),
        **gain,
    }


def _language(variant: str) -> str:
    return variant.partition(":")[0].partition("+")[0]


def _latency(points: list[rows.Row], arm: str) -> Any:
    import altair as alt

    y = alt.Y(
        "seconds:Q",
        title="latency of one pass",
        axis=parts.si_axis("s", log=True),
        scale=alt.Scale(type="log", nice=False, padding=12),
    )
    legend = alt.Legend(title=None, symbolOpacity=1, columns=4)
    layers = _over_batches(parts.data("infer", points), points, arm, y, ("low", "high"), legend)
    return alt.layer(*layers).properties(width=300, height=260, title=arm)


def _gain(points: list[rows.Row], gains: list[rows.Row], arm: str) -> Any:
    import altair as alt

    seen = [value for p in gains if p["arm"] == arm for value in (p["least"], p["most"])]
    wide = seen and max(seen) > 6 * min(seen)
    ticks = {"values": [d * 10.0**e for e in range(-3, 4) for d in (1, 2, 5)]} if wide else {"tickCount": 5}
    axis = alt.Axis(labelExpr="datum.label ? format(datum.value, '~g') + '×' : ''", **ticks)
    y = alt.Y("gain:Q", title="gain over torch", axis=axis, scale=alt.Scale(type="log", nice=False, padding=12))
    layers = _over_batches(parts.data("gains", gains), points, arm, y, ("least", "most"), None)
    one = alt.Chart(parts.data("same", [{"gain": 1}])).mark_rule(style="one").encode(y="gain:Q")
    return alt.layer(one, *layers).properties(width=300, height=180, title=f"{arm}, gain")


def _over_batches(data: Any, points: list[rows.Row], arm: str, y: Any, ends: tuple[str, str], legend: Any) -> list[Any]:
    import altair as alt

    names = list(dict.fromkeys(p["variant"] for p in points))
    colours = [BACKEND_COLOURS.get(_language(n), OTHER_COLOUR) for n in names]
    dashes = [DASHES[[m for m in names if _language(m) == _language(n)].index(n) % len(DASHES)] for n in names]
    sizes = alt.Axis(format="d", labelOverlap="greedy", values=sorted({p["batch"] for p in points}))
    base = (
        alt.Chart(data)
        .transform_filter(parts.picked("case"))
        .transform_filter(f"datum.arm === '{arm}'")
        .encode(
            x=alt.X("batch:Q", title="batch", axis=sizes, scale=alt.Scale(type="log", base=2, nice=False, padding=14)),
            y=y,
            color=alt.Color("variant:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            tooltip=[alt.Tooltip(f"{f}:N") for f in ("Variant", "Latency", "Throughput", "Gain", "Memory")],
        )
    )
    dash = alt.StrokeDash("variant:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    return [
        base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y(f"{ends[0]}:Q"), y2=f"{ends[1]}:Q"),
        base.mark_point(filled=True, size=40, opacity=1),
    ]


def labels(sites: Sequence[str]) -> dict[str, str]:
    """Site → as much of its end as tells it from the others. A site of two modules has both."""
    paths = {path for site in sites for path in site.split(BOTH)}

    def end(path: str) -> str:
        steps = path.split(".")
        for count in range(2, len(steps)):
            short = ".".join(steps[-count:])
            if not any(other.endswith(f".{short}") for other in paths - {path}):
                return f"…{short}"
        return path

    return {s: s if len(s) <= WHOLE else BOTH.join(map(end, s.split(BOTH))) for s in sites}


def savings(records: Sequence[Record], case: str) -> Iterator[rows.Row]:
    """Of one variant in all its arms, at the largest batch at which its sites were timed alone: one row for each site
    and way, and what the whole pass was seen to save in each arm."""
    from assay.models.studies.infer.joined import alike

    promised = [r for r in records if "cold" in (r.evidence.get("predicted") or {})]
    batch = max((r.evidence["batch"] for r in promised), default=0)
    mine = [r for r in promised if r.evidence["batch"] == batch]
    told = next((r.evidence for r in mine if r.evidence.get("sites")), None)
    if told is None:
        return
    base = {"case": case, "variant": f"{told['variant']}, batch {batch}"}

    def row(site: str, way: str, saved: float, words: str) -> rows.Row:
        return base | {"site": site, "way": way, "slot": SLOTS[way], "saved": saved, "Saves": words}

    found = alike(told["sites"])
    called = labels([site["site"] for site in found])
    for site in found:
        times = {way: {side: site["alone"][side][kind] for side in ("torch", "kernel")} for way, kind in _KINDS.items()}
        if inside := site.get("in_model"):
            times["in the model"] = inside
        for way, pair in times.items():
            saved = pair["torch"] - pair["kernel"]
            yield row(
                called[site["site"]], way, saved, f"{units.si(saved, 's', 3)} of {units.si(pair['torch'], 's', 3)}"
            )
    for way, kind in {**_KINDS, "in the model": "in_model"}.items():
        if promise := told["predicted"].get(kind):
            yield row(ALL, way, promise["saving"], units.si(promise["saving"], "s", 3))
    for record in mine:
        seen = record.evidence["saving"]
        low, high = seen["interval"]
        words = units.between(seen["median"], (low, high), "s")
        yield row(f"the pass, {record.evidence['arm']}", SEEN, seen["median"], words) | {"low": low, "high": high}


def _savings(found: list[rows.Row], variant: str) -> Any:
    import altair as alt

    mine = [row for row in found if row["variant"] == variant]
    wanted = alt.FieldEqualPredicate(field="variant", equal=variant)
    base = alt.Chart(parts.data("saved", found)).transform_filter(parts.picked("case")).transform_filter(wanted)
    y = alt.Y("site:N", title=None, sort=list(dict.fromkeys(r["site"] for r in mine)), axis=alt.Axis(labelLimit=210))
    offset = alt.YOffset("slot:N", scale=alt.Scale(domain=sorted(set(SLOTS.values()))))
    tint = alt.Color(
        "way:N",
        scale=alt.Scale(domain=list(WAYS), range=list(WAYS.values())),
        legend=alt.Legend(title=None, symbolOpacity=1),
    )
    x = alt.X("saved:Q", title="saved in one pass", axis=parts.si_axis("s", labelFlush=True, tickCount=3))
    hover = [alt.Tooltip("site:N", title="Site"), alt.Tooltip("way:N", title="By"), alt.Tooltip("Saves:N")]
    bars = base.mark_bar(height={"band": 0.85}).encode(x=x, y=y, yOffset=offset, color=tint, tooltip=hover)
    ends = base.transform_filter("isValid(datum.low)").mark_tick(style="whisker", thickness=1.5)
    whiskers = [ends.encode(x=f"{end}:Q", y=y, yOffset=offset) for end in ("low", "high")]
    zero = alt.Chart(parts.data("zero", [{"saved": 0}])).mark_rule(style="one").encode(x="saved:Q")
    return alt.layer(bars, *whiskers, zero).properties(width=220, height=alt.Step(9), title=variant)
