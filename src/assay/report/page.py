"""One self-contained page: everything it needs is inside, and its own policy forbids it to fetch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import units
from assay.errors import UsageError
from assay.record import Record
from assay.report import answer, machine, model_compile, model_infer, rows, tables, theme
from assay.report.charts import FIGURES
from assay.report.table import Note, Table, to_html

if TYPE_CHECKING:
    import jinja2

TABLES: dict[str, Callable[[Sequence[Record]], Iterable[Table[Any] | Note]]] = {
    "models": model_infer.parts,
    "compile": lambda records: model_compile.parts(records, wide=True),
}
"""Below which figures there are tables too."""
INSTALL = "pip install 'kernel-assay[report]'"


def report(records: Iterable[Record], out: Path, *, title: str = "Assay report", pictures: Path | None = None) -> Path:
    """Write the page to `out`, and with `pictures` each chart as SVG and PNG into that folder."""
    every = list(records)
    found = rows.latest(every)
    text = render(found, title=title, older=len(every) - len(found))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if pictures is not None:
        from assay.report import pictures as drawn

        drawn.draw(found, pictures)
    return out


def render(records: Sequence[Record], *, title: str, older: int = 0) -> str:
    figures, shared = figures_of(records)
    commons = [rows.common(r) for r in records]
    filters = {
        field: sorted({c[field] for c in commons if c[field]})
        for field in ("op", "backend", "dtype", "status", "device")
    }
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            headline=answer.headline(records),
            scope=answer.scope(records),
            counts=answer.counts(records),
            fastest=answer.fastest(records),
            failures=[r | {"record": f} for f in answer.failures(records) for r in tables.every([f])],
            figures=figures,
            shared=shared,
            filters=filters,
            models=[(m, machine.table(m)) for m in machine.models(records)],
            selftests=tables.selftests(records),
            machines=tables.machines(records),
            every=tables.every(records),
            older=older,
            bundle=bundle(),
            configs={"light": theme.LIGHT_CONFIG, "dark": theme.DARK_CONFIG},
            theme=theme,
        )
    )


def figures_of(records: Sequence[Record]) -> tuple[list[dict[str, Any]], dict[str, list[rows.Row]]]:
    """The charts' specs with their rows taken out, and the rows, each set once however many charts use it."""
    from markupsafe import Markup

    figures, shared = [], {}
    names: dict[str, str] = {}
    for figure in FIGURES:
        spec = figure.spec(records)
        if spec is None:
            continue
        for holder in _holders(spec):
            text = holder["data"]["values"]
            key = names.setdefault(text, f"{holder['data']['name']}-{len(names)}")
            shared[key] = json.loads(text)
            holder["data"] = {"name": key}
        drawn = [Markup(to_html(part)) for part in TABLES.get(figure.name, lambda records: ())(records)]
        about = {"name": figure.name, "title": figure.title, "caption": figure.caption}
        figures.append(about | {"spec": spec, "tables": drawn})
    return figures, shared


def _holders(spec: Any) -> list[dict[str, Any]]:
    """Every part of a spec that brings its own rows."""
    if isinstance(spec, list):
        return [h for part in spec for h in _holders(part)]
    if not isinstance(spec, dict):
        return []
    mine = [spec] if isinstance(spec.get("data"), dict) and "values" in spec["data"] else []
    return mine + [h for key, part in spec.items() if key != "data" for h in _holders(part)]


@cache
def bundle() -> str:
    """Vega, Vega-Lite and vega-embed in one script, out of what vl-convert ships: no network is asked."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError("a report needs altair and vl-convert", fix=INSTALL) from None
    return str(vl_convert.javascript_bundle(snippet="Object.assign(window, {vegaEmbed, vega, vegaLite})"))


@cache
def environment() -> jinja2.Environment:
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise UsageError("a report needs jinja2", fix=INSTALL) from None
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "template"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["share"] = units.share
    made.filters["times"] = units.times
    # "<" is written so that no text of a record can end the script it stands in.
    made.filters["json"] = lambda value: Markup(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).replace("<", "\\u003c")
    )
    return made
