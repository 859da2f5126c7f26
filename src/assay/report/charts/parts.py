"""Shared by all charts: rows as data, one colour per backend, axes with SI units, and menus."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from assay.kernel import BACKENDS
from assay.report.rows import Row
from assay.report.theme import BACKEND_COLOURS, OTHER_COLOUR

Chart = alt.TopLevelMixin
PICK = "pick_"
"""The prefix of a menu's name, followed by the field that it filters by; the page looks for it when it filters."""
DTYPE_SHAPES = {"fp32": "circle", "bf16": "square", "fp16": "diamond", "fp64": "triangle-up"}
TOOLTIP = ("Time", "Speedup", "Bandwidth", "Compute", "Share of the limit", "Share of a copy", "Notes")


def data(name: str, rows: Sequence[Row]) -> alt.InlineData:
    """Return rows as one JSON text, which Vega-Lite accepts. With a list, Altair would examine every value, which takes
    seconds."""
    # A screen shows at most six digits; the records keep all.
    short = [{k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    return alt.InlineData(values=json.dumps(short), name=name, format=alt.JsonDataFormat(type="json"))


def backends(rows: Iterable[Row]) -> list[str]:
    """Return the backends of these rows, in their fixed order."""
    present = {row["backend"] for row in rows}
    return [b for b in BACKENDS if b in present] + sorted(present - set(BACKENDS))


def colour(rows: Sequence[Row]) -> alt.Color:
    """Return the colours of the backends, the same in every chart."""
    names = backends(rows)
    scale = alt.Scale(domain=names, range=[BACKEND_COLOURS.get(n, OTHER_COLOUR) for n in names])
    return alt.Color("backend:N", scale=scale, legend=alt.Legend(title=None, symbolOpacity=1))


def si_axis(unit: str, log: bool = False, **more: Any) -> alt.Axis:
    """Return an axis with ticks like `20 µs` or `4 TB/s`. A logarithmic one has ticks at 1, 2, 5, 10, and lines at the
    powers of ten."""
    expression = rf"replace(format(datum.value, '~s'), regexp('([^0-9]?)$'), '\u00a0$1') + '{unit}'"
    if not unit:
        expression = "format(datum.value, '~g')"
    if log:
        expression = f"indexof([1, 2, 5], {LEADING}) >= 0 ? {expression} : ''"
        power = {"condition": {"test": f"{LEADING} === 1", "value": 1}, "value": 0}
        more |= {"gridOpacity": power, "tickOpacity": power, "labelOverlap": "greedy"}
    return alt.Axis(labelExpr=expression, **more)


LEADING = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)) * 100) / 100"
"""A tick's first digit, if it has only one."""
PERCENT = "format(100 * datum.value, '.0f') + '\u00a0%'"


def share_axis(**more: Any) -> alt.Axis:
    return alt.Axis(labelExpr=PERCENT, **more)


def accuracy_axis() -> alt.Axis:
    """Return an axis of shares that may be close together, with as many digits as they need."""
    return alt.Axis(labelExpr="format(100 * datum.value, '~g') + '\u00a0%'", tickCount=8)


def tooltips(*fields: str) -> list[alt.Tooltip]:
    """Return the tooltip: kernel and workload, then these fields."""
    first = [alt.Tooltip("kernel:N", title="Kernel"), alt.Tooltip("workload:N", title="Workload")]
    return first + [alt.Tooltip(f"{f}:N", title=f.capitalize()) for f in fields]


def pick(field: str, options: Sequence[str], label: str) -> alt.Parameter:
    """Return a menu that initially shows its first option."""
    return alt.param(name=PICK + field, value=options[0], bind=alt.binding_select(options=list(options), name=label))


def picked(field: str) -> str:
    """Return the filter for the rows that the menu has selected."""
    return f"datum.{field} === {PICK}{field}"
