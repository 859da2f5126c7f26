"""The total time of n calls, eager and compiled, from each state. Compiling pays off from the point where lines
cross."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from assay import units
from assay.models.studies.compile.planning import SHAPES
from assay.record import Record
from assay.report import rows
from assay.report.charts import parts
from assay.report.model_compile import State, read
from assay.report.theme import BACKEND_COLOURS

TITLE = "torch.compile"
CAPTION = (
    "What n calls take together. Points are measured; a line is what compiling cost and n times the steady call. "
    "Dashed: from there on compiled is ahead. Each process has an eager line of its own, timed in turn with compiled."
)
COLOURS = {
    "eager": BACKEND_COLOURS["torch"],
    "cold": BACKEND_COLOURS["njit"],
    "disk": BACKEND_COLOURS["inductor"],
    "warm": BACKEND_COLOURS["cuda"],
}
NAMES = {
    "eager": "eager",
    "cold": "compiled, cold",
    "disk": "compiled, warm disk cache",
    "warm": "compiled before, in the same process",
}
HEIGHT = 340
_LEAST = 1000
"""The lines extend to at least this many calls, and to ten times the last crossing."""


def draw(records: Sequence[Record]) -> parts.Chart | None:
    points = list(lines(records))
    if not points:
        return None
    names = [NAMES[n] for n in NAMES if any(r["way"] == NAMES[n] for r in points)]
    colours = [COLOURS[n] for n in NAMES if NAMES[n] in names]
    base = alt.Chart(parts.data("compile", points)).transform_filter(parts.picked("case"))
    tens = alt.Axis(format="~s", values=[10**n for n in range(13)])
    x = alt.X("calls:Q", title="calls", axis=tens, scale=alt.Scale(type="log", nice=False))
    y = alt.Y(
        "seconds:Q",
        title="time of all of them together",
        axis=parts.si_axis("s", log=True),
        scale=alt.Scale(type="log", nice=False, padding=12),
    )
    tint = alt.Color(
        "way:N",
        scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(title=None, symbolOpacity=1, labelLimit=400),
    )
    drawn = base.transform_filter("datum.kind === 'line'").mark_line(strokeWidth=2)
    dots = base.transform_filter("datum.kind === 'measured'").mark_point(filled=True, size=40, opacity=1)
    crossing = base.transform_filter("datum.kind === 'crossing'")
    rules = crossing.mark_rule(style="limit").encode(x=x, tooltip=_hover("Says"))
    words = [
        crossing.transform_filter(f"datum.state === '{state}'")
        .mark_text(style="limit-label", align="left", dx=5)
        .encode(x=x, y=alt.value(HEIGHT - 12 - 16 * line), text="Says:N")
        for line, state in enumerate(("disk", "cold"))
    ]
    layers = [
        rules,
        drawn.encode(x=x, y=y, color=tint, detail="state:N"),
        dots.encode(x=x, y=y, color=tint, tooltip=_hover("Calls", "Time")),
        *words,
    ]
    return (
        alt.layer(*layers)
        .add_params(parts.pick("case", list(dict.fromkeys(r["case"] for r in points)), "Case"))
        .properties(width=900, height=HEIGHT, description="Time of n calls, eager and compiled")
    )


def _hover(*fields: str) -> list[Any]:
    return [alt.Tooltip("way:N", title="Way"), *(alt.Tooltip(f"{f}:N", title=f) for f in fields)]


def lines(records: Sequence[Record]) -> Iterator[rows.Row]:
    """Yield the measured points, the straight lines through them, and the crossings."""
    timed = [state for state in read(records) if state.worth]
    several = len({rows.device(state.record) for state in timed}) > 1
    groups: dict[str, list[State]] = {}
    for state in timed:
        evidence, record = state.evidence, state.record
        about = [record.kernel, f"batch {'+'.join(map(str, evidence.batches))}", evidence.dtype]
        about += [evidence.mode] * (evidence.mode != "default")
        about += [SHAPES[evidence.dynamic]] * (evidence.dynamic is not None)
        groups.setdefault(" · ".join(about + [rows.device(record)] * several), []).append(state)
    for case, states in groups.items():
        most = 10 * max([_LEAST / 10, *(state.crossing or 0 for state in states)])
        for state in states:
            yield from _state(case, state, most)


def _state(case: str, state: State, most: float) -> Iterator[rows.Row]:
    """Yield the rows of one state. Each state has an eager line of its own, from the same process, timed in turn with
    compiled."""
    name = state.evidence.state
    for arm, begin in (("eager", 0.0), ("compiled", state.fixed)):
        way = NAMES["eager" if arm == "eager" else name]
        row = rows.common(state.record) | {"case": case, "state": name, "way": way}
        each, calls = state.steady(arm), 1.0
        while calls <= most * 1.001:
            yield row | {"kind": "line", "calls": calls, "seconds": begin + calls * each}
            calls *= 10**0.125
        for count, seconds in state.curve(arm).items():
            words = {"Calls": f"{count:,}", "Time": units.si(seconds, "s")}
            yield row | {"kind": "measured", "calls": count, "seconds": seconds} | words
        if arm == "compiled" and state.crossing:
            words = {"Says": f"{name}: pays after {state.crossing:,} calls"}
            yield row | {"kind": "crossing", "calls": state.crossing} | words
