"""Kernels in a model: latency and gain over batch sizes, and what each site saves alone, in the model and in the whole
pass."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from assay import units
from assay.models.studies.infer.joined import alike
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.infer_runs import runs
from assay.report.infer_tables import One, read
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
"""The line styles of variants that share a language, in order."""
ALL, SEEN = "all sites", "the whole pass, seen"
BOTH = " + "
"""Separates the modules of a site that has two."""
WHOLE = 24
"""Names of up to this many characters are shown in full."""
WAYS = {"alone, cold": "#56B4E9", "alone, hot": "#0072B2", "in the model": "#E69F00", SEEN: "#009E73"}
SLOTS = {"alone, cold": 0, "alone, hot": 1, "in the model": 2, SEEN: 1}
"""The position of each bar among the three of a site. A pass has one bar, in the middle."""

_KINDS = {"alone, cold": "cold", "alone, hot": "hot"}


def draw(records: Sequence[Record]) -> parts.Chart | None:
    shown = [(run, one) for run in runs(read(records)) for one in run.ones if one.record.median]
    several = len({rows.device(one.record) for _, one in shown}) > 1
    timed = [(one, _case(one, run.label, several)) for run, one in shown]
    points = [_point(one, case) for one, case in timed]
    if not points:
        return None
    arms = list(dict.fromkeys(p["arm"] for p in points))
    drawn: list[Any] = [alt.hconcat(*(_latency(points, arm) for arm in arms), spacing=26)]
    if gains := [p for p in points if "gain" in p]:
        drawn.append(alt.hconcat(*(_gain(points, gains, arm) for arm in arms), spacing=26))
    groups: dict[tuple[str, str], list[One]] = {}
    for one, case in timed:
        groups.setdefault((case, one.evidence.variant), []).append(one)
    if saved := [row for (case, _), group in groups.items() for row in savings(group, case)]:
        panels = [_savings(saved, name) for name in dict.fromkeys(row["variant"] for row in saved)]
        drawn.append(alt.concat(*panels, columns=3, spacing=26))
    return (
        alt.vconcat(*drawn, spacing=30)
        .resolve_scale(color="independent", strokeDash="independent")
        .add_params(parts.pick("case", list(dict.fromkeys(p["case"] for p in points)), "Model"))
        .properties(description="Latency of a model by variant, and what each swapped site saves")
    )


def _case(one: One, label: str, several: bool) -> str:
    """Return the name of the case: one run of a model. It includes the device if there are several."""
    device = rows.device(one.record) if several else ""
    return " · ".join(filter(None, (one.record.kernel, one.evidence.dtype, label, device)))


def _point(one: One, case: str) -> rows.Row:
    evidence, median = one.evidence, float(one.record.median or 0)
    low, high = one.record.interval or (median, median)
    variant, speedup = evidence.variant, evidence.speedup
    gain = {"gain": speedup.median, "least": speedup.interval[0], "most": speedup.interval[1]} if speedup else {}
    return rows.common(one.record) | {
        "case": case,
        "variant": variant,
        "backend": _language(variant),
        "arm": evidence.arm,
        "batch": evidence.batch,
        "seconds": median,
        "low": low,
        "high": high,
        "Variant": variant,
        "Latency": units.between(median, (low, high), "s"),
        "Throughput": units.si(evidence.throughput, "1/s"),
        "Gain": f"{units.times(speedup.median)} over torch" if speedup else units.NOTHING,
        "Memory": units.si((evidence.peak_bytes or {}).get(evidence.whose), "B"),
        **gain,
    }


def _language(variant: str) -> str:
    return variant.partition(":")[0].partition("+")[0]


def _latency(points: list[rows.Row], arm: str) -> Any:
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
    seen = [value for p in gains if p["arm"] == arm for value in (p["least"], p["most"])]
    wide = seen and max(seen) > 6 * min(seen)
    ticks = {"values": [d * 10.0**e for e in range(-3, 4) for d in (1, 2, 5)]} if wide else {"tickCount": 5}
    axis = alt.Axis(labelExpr="datum.label ? format(datum.value, '~g') + '×' : ''", **ticks)
    y = alt.Y("gain:Q", title="gain over torch", axis=axis, scale=alt.Scale(type="log", nice=False, padding=12))
    layers = _over_batches(parts.data("gains", gains), points, arm, y, ("least", "most"), None)
    one = alt.Chart(parts.data("same", [{"gain": 1}])).mark_rule(style="one").encode(y="gain:Q")
    return alt.layer(one, *layers).properties(width=300, height=180, title=f"{arm}, gain")


def _over_batches(data: Any, points: list[rows.Row], arm: str, y: Any, ends: tuple[str, str], legend: Any) -> list[Any]:
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
    """Return, for each site, the shortest suffix of its path that no other site has. A site of two modules has both."""
    paths = {path for site in sites for path in site.split(BOTH)}

    def end(path: str) -> str:
        steps = path.split(".")
        for count in range(2, len(steps)):
            short = ".".join(steps[-count:])
            if not any(other.endswith(f".{short}") for other in paths - {path}):
                return f"…{short}"
        return path

    return {s: s if len(s) <= WHOLE else BOTH.join(map(end, s.split(BOTH))) for s in sites}


def savings(ones: Sequence[One], case: str) -> Iterator[rows.Row]:
    """Yield the savings of one variant in all its arms, at the largest batch at which its sites were timed alone: one
    row per site and way, and the observed saving of the whole pass in each arm."""
    promised = [one.evidence for one in ones if one.evidence.predicted and one.evidence.predicted.cold]
    batch = max((evidence.batch for evidence in promised), default=0)
    arms = [evidence for evidence in promised if evidence.batch == batch]
    first = next((evidence for evidence in arms if evidence.sites), None)
    if first is None:
        return
    base = {"case": case, "variant": f"{first.variant}, batch {batch}"}

    def row(site: str, way: str, saved: float, words: str) -> rows.Row:
        return base | {"site": site, "way": way, "slot": SLOTS[way], "saved": saved, "Saves": words}

    sites = alike(first.sites or [])
    called = labels([site.site for site in sites])
    for site in sites:
        alone = site.alone.torch, site.alone.kernel
        times = {way: [getattr(side, kind) for side in alone] for way, kind in _KINDS.items()}
        if site.in_model and not site.exceeds:
            times["in the model"] = [site.in_model.torch, site.in_model.kernel]
        for way, (torch, kernel) in times.items():
            words = f"{units.si(torch - kernel, 's', 3)} of {units.si(torch, 's', 3)}"
            yield row(called[site.site], way, torch - kernel, words)
    for way, kind in {**_KINDS, "in the model": "in_model"}.items():
        if promise := getattr(first.predicted, kind):
            yield row(ALL, way, promise.saving, units.si(promise.saving, "s", 3))
    for evidence in arms:
        if seen := evidence.saving:
            low, high = seen.interval
            words = units.between(seen.median, seen.interval, "s")
            yield row(f"the pass, {evidence.arm}", SEEN, seen.median, words) | {"low": low, "high": high}


def _savings(saved: list[rows.Row], variant: str) -> Any:
    names = list(dict.fromkeys(row["site"] for row in saved if row["variant"] == variant))
    wanted = alt.FieldEqualPredicate(field="variant", equal=variant)
    base = alt.Chart(parts.data("saved", saved)).transform_filter(parts.picked("case")).transform_filter(wanted)
    y = alt.Y("site:N", title=None, sort=names, axis=alt.Axis(labelLimit=210))
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
