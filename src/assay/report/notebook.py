"""Shows records in a notebook as a small self-contained table."""

from collections.abc import Iterable

from assay.record import Record
from assay.report import tables, theme


def html_table(records: Iterable[Record]) -> str:
    """Return self-contained HTML: no script, nothing fetched, light or dark like the reader's screen."""
    from assay.report.page import environment

    rows = tables.every(list(records))
    return environment().get_template("table.html").render(rows=rows, theme=theme)


class Records(list[Record]):
    """A list of records that a notebook shows as a table: `Records(assay.check("gelu"))`."""

    def _repr_html_(self) -> str:
        return html_table(self)
