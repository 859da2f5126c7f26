"""One chart in a file of its own: a page that needs nothing else, or a picture."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay import host
from assay.errors import UsageError
from assay.record import Record
from assay.report.charts import Figure
from assay.report.charts.parts import PICK
from assay.report.page import INSTALL
from assay.report.pictures import SCALE
from assay.report.theme import LIGHT, LIGHT_CONFIG

_VERSION = "6.4"


def check(*paths: Path | None) -> None:
    """Before the hours that a study may take: can these be written? UsageError if not."""
    for path in filter(None, paths):
        if path.suffix not in (".html", ".svg", ".png"):
            raise UsageError(f"{path}: a chart is written as .html, .svg or .png", fix=f"{path.with_suffix('.png')}")
        if not (host.has("altair") and host.has("vl_convert")):
            raise UsageError("a chart needs altair and vl-convert", fix=INSTALL)


def save(figure: Figure, records: Sequence[Record], path: Path) -> list[Path]:
    """By the name's ending: .html, .svg or .png. A picture shows one case; with several, there is one picture for each.
    Nothing to draw, nothing written."""
    check(path)
    import vl_convert

    spec = figure.spec(records)
    if spec is None:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    spec |= {"title": figure.title, "config": LIGHT_CONFIG | {"background": LIGHT["ground"], "padding": 16}}
    if path.suffix == ".html":
        path.write_text(vl_convert.vegalite_to_html(json.dumps(spec), vl_version=_VERSION, bundle=True))
        return [path]
    written = []
    for file, one in _cases(spec, path):
        svg = vl_convert.vegalite_to_svg(json.dumps(one), vl_version=_VERSION)
        if path.suffix == ".svg":
            file.write_text(svg)
        else:
            file.write_bytes(vl_convert.svg_to_png(svg, scale=SCALE))
        written.append(file)
    return written


def _cases(spec: dict[str, Any], path: Path) -> list[tuple[Path, dict[str, Any]]]:
    menu = next((p for p in spec.get("params", []) if p["name"].startswith(PICK)), None)
    if menu is None:
        return [(path, spec)]
    found = []
    options = menu["bind"]["options"]
    for option in options:
        name = re.sub(r"\W+", "_", option).strip("_")
        file = path if len(options) == 1 else path.with_stem(f"{path.stem}-{name}")
        params = [p | {"value": option} if p is menu else p for p in spec["params"]]
        found.append((file, spec | {"params": params, "title": option}))
    return found
