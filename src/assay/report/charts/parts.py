"""What the charts share: rows as data, one colour per backend, axes with SI units, a menu to pick by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from assay.kernel import BACKENDS
from assay.report.rows import Row
from assay.report.theme import BACKEND_COLOURS, OTHER_COLOUR

if TYPE_CHECKING:
    import altair as alt

Chart: TypeAlias = "alt.TopLevelMixin"
PICK = "pick_"
"""A menu's name is this and the field it picks by: the page looks for it when it filters."""
DTYPE_SHAPES = {"fp32": "circle", "bf16": "square", "fp16": "diamond", "fp64": "triangle-up"}
TOOLTIP = ("Time", "Speedup", "Bandwidth", "Compute", "Share of the limit", "Share of a copy", "Notes")


def data(name: str, rows: Sequence[Row]) -> alt.InlineData:
    """Rows as one JSON text, which Vega-Lite takes as well: Altair would look at every value of a list, for seconds."""
    import altair as alt

    return alt.InlineData(
        values=json.dumps([_short(row) for row in rows]), name=name, format=alt.JsonDataFormat(type="json")
    )


def _short(row: Row) -> Row:
    """A screen shows no more than six digits; the records keep them all."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()}


def backends(rows: Iterable[Row]) -> list[str]:
    """Those present, in the order they always have."""
    present = {row["backend"] for row in rows}
    return [b for b in BACKENDS if b in present] + sorted(present - set(BACKENDS))


def colour(rows: Sequence[Row], legend: bool = True) -> alt.Color:
    """The same backend has the same colour in every chart."""
    import altair as alt

    names = backends(rows)
    scale = alt.Scale(domain=names, range=[BACKEND_COLOURS.get(n, OTHER_COLOUR) for n in names])
    return alt.Color("backend:N", scale=scale, legend=alt.Legend(title=None, symbolOpacity=1) if legend else None)


def si_axis(unit: str, log: bool = False, **more: Any) -> alt.Axis:
    """Ticks as `20 µs`, `4 TB/s`, whatever the scale turns out to be; on a logarithmic one 1, 2, 5, 10, and lines at
    the powers of ten."""
    import altair as alt

    expression = rf"replace(format(datum.value, '~s'), regexp('([^0-9]?)$'), '\u00a0$1') + '{unit}'"
    if not unit:
        expression = "format(datum.value, '~g')"
    if log:
        expression = f"indexof([1, 2, 5], {LEADING}) >= 0 ? {expression} : ''"
        power = {"condition": {"test": f"{LEADING} === 1", "value": 1}, "value": 0}
        more |= {"gridOpacity": power, "tickOpacity": power, "labelOverlap": "greedy"}
    return alt.Axis(labelExpr=expression, **more)


LEADING = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)) * 100) / 100"
"""A tick's first digit, where it has no other."""


PERCENT = "format(100 * datum.value, '.0f') + '\u00a0%'"


def share_axis(**more: Any) -> alt.Axis:
    import altair as alt

    return alt.Axis(labelExpr=PERCENT, **more)


def tooltips(*fields: str) -> list[alt.Tooltip]:
    """The hover: kernel and workload, then these."""
    import altair as alt

    first = [alt.Tooltip("kernel:N", title="Kernel"), alt.Tooltip("workload:N", title="Workload")]
    return first + [alt.Tooltip(f"{f}:N", title=f.capitalize()) for f in fields]


def pick(field: str, options: Sequence[str], label: str) -> alt.Parameter:
    """A menu; the first option is what a picture shows."""
    import altair as alt

    return alt.param(name=PICK + field, value=options[0], bind=alt.binding_select(options=list(options), name=label))


def picked(field: str) -> str:
    return f"datum.{field} === {PICK}{field}"
