"""One self-contained page: it contains everything it needs, and its own policy forbids fetching anything."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from assay import cached, units
from assay.errors import UsageError
from assay.record import Record
from assay.report import answer, bench, machine, model_compile, model_infer, rows, tables, theme
from assay.report.pictures import INSTALL, draw, require_charts
from assay.report.removed import Removed
from assay.report.table import Note, Table, to_html

TABLES: dict[str, Callable[[Sequence[Record]], Iterable[Table[Any] | Note]]] = {
    "runtime": bench.parts,
    "models": model_infer.parts,
    "compile": lambda records: model_compile.parts(records, wide=True),
}
"""The figures that have tables below them, and the functions that make these tables."""


def report(
    records: Iterable[Record],
    out: Path,
    *,
    title: str = "Assay report",
    pictures: Path | None = None,
    removed: Sequence[Removed] = (),
) -> Path:
    """Write the page to `out`, and with `pictures` each chart as SVG and PNG into that folder. `removed`: records of
    kernels that are no longer in the source (assay.report.removed), which are only listed."""
    every = list(records)
    latest = rows.latest(every)
    text = render(latest, title=title, older=len(every) - len(latest), removed=removed)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if pictures is not None:
        draw(latest, pictures)
    return out


def render(records: Sequence[Record], *, title: str, older: int = 0, removed: Sequence[Removed] = ()) -> str:
    """Return the page's text. `older` is the number of records left out because there are newer ones."""
    require_charts("a report")
    figures, shared = figures_of(records)
    every = tables.every(records)
    fields = ("op", "backend", "dtype", "status", "device")
    filters = {field: sorted({row[field] for row in every if row[field]}) for field in fields}
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            headline=answer.headline(records),
            scope=answer.scope(records),
            by_op=answer.by_op(records),
            counts=answer.counts(records),
            fastest=answer.fastest(records),
            failures=[row | {"record": r} for row, r in zip(every, records, strict=True) if row["status"] == "fail"],
            figures=figures,
            shared=shared,
            filters=filters,
            models=[(m, machine.table(m)) for m in machine.models(records)],
            selftests=tables.selftests(records),
            machines=tables.machines(records),
            every=every,
            older=older,
            removed=removed,
            bundle=bundle(),
            configs={"light": theme.LIGHT_CONFIG, "dark": theme.DARK_CONFIG},
            theme=theme,
        )
    )


def figures_of(records: Sequence[Record]) -> tuple[list[dict[str, Any]], dict[str, list[rows.Row]]]:
    """Return the charts' specs without their rows, and the rows by name: each set once, even if several charts use
    it."""
    from markupsafe import Markup

    from assay.report.charts import FIGURES

    figures, shared = [], {}
    names: dict[str, str] = {}
    for figure in FIGURES:
        spec = figure.spec(records)
        if spec is None:
            continue
        for part in _with_rows(spec):
            text = part["data"]["values"]
            key = names.setdefault(text, f"{part['data']['name']}-{len(names)}")
            shared[key] = json.loads(text)
            part["data"] = {"name": key}
        drawn = [Markup(to_html(table)) for table in TABLES.get(figure.name, lambda records: ())(records)]
        about = {"name": figure.name, "title": figure.title, "caption": figure.caption}
        figures.append(about | {"spec": spec, "tables": drawn})
    return figures, shared


def _with_rows(spec: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a spec that has its own rows."""
    if isinstance(spec, dict):
        if isinstance(spec.get("data"), dict) and "values" in spec["data"]:
            yield spec
        spec = [part for key, part in spec.items() if key != "data"]
    if isinstance(spec, list):
        for part in spec:
            yield from _with_rows(part)


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script, which vl-convert contains, so that nothing is fetched."""
    import vl_convert

    snippet = "Object.assign(window, {vegaEmbed, vega, vegaLite})"
    return cached.text(
        "vega",
        f"vl-convert {version('vl-convert-python')} {snippet}",
        lambda: vl_convert.javascript_bundle(snippet=snippet),
    )


@cache
def environment() -> Any:
    """Return the Jinja environment of the page's templates."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise UsageError("a report needs jinja2", fix=INSTALL) from None
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "template"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    jinja.filters["share"] = units.share
    jinja.filters["times"] = units.times
    # "<" is escaped, so that no text of a record can end the script that contains it.
    jinja.filters["json"] = lambda value: Markup(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).replace("<", "\\u003c")
    )
    return jinja
