"""Draws charts as files, without a browser: SVG or PNG."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import host
from assay.errors import UsageError
from assay.record import Record
from assay.report.theme import LIGHT, LIGHT_CONFIG

if TYPE_CHECKING:
    from assay.report.charts import Figure

INSTALL = "pip install 'kernel-assay[report]'"
_SCALE = 2.0
"""Pixels per point in a PNG; sharp on high-density screens."""
_VERSION = "6.4"
"""Version of Vega-Lite."""
_COMMON = ("pick_device", "pick_clock")
"""Menus that do not choose an op or a case."""


def require_charts(what: str) -> None:
    """Raise UsageError if charts cannot be drawn."""
    if not (host.has("altair") and host.has("vl_convert")):
        raise UsageError(f"{what} needs altair and vl-convert", fix=INSTALL)


def check(*paths: Path | None) -> None:
    """Raise UsageError if charts cannot be written to these files, before a study that may take hours."""
    for path in filter(None, paths):
        if path.suffix not in (".html", ".svg", ".png"):
            raise UsageError(f"{path}: a chart is written as .html, .svg or .png", fix=f"{path.with_suffix('.png')}")
        require_charts("a chart")


def save(figure: "Figure", records: Sequence[Record], path: Path) -> list[Path]:
    """Write one chart in the format of the file's suffix, and return the files. A picture shows one case; with several
    cases, each gets its own picture. Without anything to draw, nothing is written."""
    check(path)
    spec = _styled(figure, records)
    if spec is None:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = _cases(spec)
    files = [path if len(cases) == 1 else path.with_stem(f"{path.stem}-{_word(option).strip('_')}") for option in cases]
    return [written for file, case in zip(files, cases.values(), strict=True) for written in _write(case, file)]


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Write every chart as SVG and PNG (`verdicts.svg`, …); charts with a menu once per op (`runtime-gelu.svg`, …)."""
    from assay.report.charts import FIGURES

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in FIGURES:
        by_op: dict[str, dict[str, Any]] = {}
        for option, case in _cases(_styled(figure, records)).items():
            by_op.setdefault(option.partition(" · ")[0], case)
        for op, case in by_op.items():
            path = folder / (f"{figure.name}-{_word(op)}" if op else figure.name)
            written += _write(case, path.with_suffix(".svg"), path.with_suffix(".png"))
    return written


def _styled(figure: "Figure", records: Sequence[Record]) -> dict[str, Any] | None:
    """Return the chart as a complete spec on a light background; None if there is nothing to draw."""
    spec = figure.spec(records)
    style = LIGHT_CONFIG | {"background": LIGHT["ground"], "padding": 16}
    return None if spec is None else {"title": figure.title, **spec, "config": style}


def _cases(spec: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the chart for each option of its menu, which shows one at a time; a chart without a menu is returned
    itself."""
    from assay.report.charts.parts import PICK

    if spec is None:
        return {}
    menus = [p for p in spec.get("params", []) if p["name"].startswith(PICK) and p["name"] not in _COMMON]
    if not menus:
        return {"": spec}
    return {
        option: spec
        | {"title": option, "params": [p | {"value": option} if p is menus[0] else p for p in spec["params"]]}
        for option in menus[0]["bind"]["options"]
    }


def _write(spec: dict[str, Any], *files: Path) -> list[Path]:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=_VERSION)
    for file in files:
        if file.suffix == ".svg":
            file.write_text(svg)
        else:
            file.write_bytes(vl_convert.svg_to_png(svg, scale=_SCALE))
    return list(files)


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text)
