"""The charts as SVG and PNG, without a browser."""

import copy
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.record import Record
from assay.report.charts import FIGURES
from assay.report.charts.parts import PICK
from assay.report.theme import LIGHT, LIGHT_CONFIG

SCALE = 2.0
"""Pixels per point of a PNG: sharp on today's screens."""


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """`verdicts.svg`, `verdicts.png`, and for charts with a menu one of each per op: `runtime-gelu.svg`, …"""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in FIGURES:
        spec = figure.spec(records)
        for suffix, one in _by_op(spec) if spec else ():
            one.setdefault("title", figure.title)
            one["config"] = LIGHT_CONFIG | {"background": LIGHT["ground"], "padding": 16}
            svg = vl_convert.vegalite_to_svg(json.dumps(one), vl_version="6.4")
            path = folder / f"{figure.name}{suffix}"
            written += [path.with_suffix(".svg"), path.with_suffix(".png")]
            written[-2].write_text(svg)
            written[-1].write_bytes(vl_convert.svg_to_png(svg, scale=SCALE))
    return written


def _by_op(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A chart with a menu shows one choice at a time: its first for each op."""
    menus = [p for p in spec.get("params", []) if p["name"].startswith(PICK) and p["name"] not in COMMON]
    if not menus:
        yield "", spec
        return
    seen = set()
    for option in menus[0]["bind"]["options"]:
        op = option.partition(" · ")[0]
        if op not in seen:
            seen.add(op)
            one = copy.deepcopy(spec)
            next(p for p in one["params"] if p["name"] == menus[0]["name"])["value"] = option
            one["title"] = option
            yield "-" + re.sub(r"\W+", "_", op), one


COMMON = (f"{PICK}device", f"{PICK}clock")
"""Menus that are not about an op."""
