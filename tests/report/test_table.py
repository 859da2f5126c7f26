"""A table is described once, and a terminal, Markdown and HTML each show what is theirs of it."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from assay.record import read
from assay.report.page import figures_of
from assay.report.table import Cell, Column, Note, Table, to_html, to_markdown, to_rich

MODELS = Path(__file__).parents[2] / "results" / "h200" / "models"
ROWS = [("a<b", 1.0), ("a<b", 2.0), ("c", 3.0)]
TABLE = Table(
    "Times",
    [
        Column("name", lambda row: row[0], left=True),
        Column("in\nseconds", lambda row: Cell(f"[red]{row[1]:.1f}[/]", f"**{row[1]:.2f}**")),
        Column("", lambda row: "page", page="only on a page"),
        Column("terminal", lambda row: "here", page=""),
    ],
    ROWS,
    group=lambda row: row[0],
)


def test_a_terminal_names_a_group_once_and_leaves_out_what_is_for_a_page():
    terminal = Console(file=io.StringIO(), width=80)
    terminal.print(to_rich(TABLE))
    lines = terminal.file.getvalue().splitlines()
    assert lines[0].strip() == "Times" and "only on a page" not in "".join(lines)
    assert [line.split() for line in lines[-3:]] == [["a<b", "1.0", "here"], ["2.0", "here"], ["c", "3.0", "here"]]


def test_markdown_has_every_name_and_the_sides_of_its_columns():
    assert to_markdown(TABLE)[:3] == [
        "| name | in seconds | only on a page |",
        "|---|---:|---:|",
        "| a<b | **1.00** | page |",
    ]
    assert to_markdown(TABLE)[3].startswith("| a<b |") and to_markdown(TABLE)[-1] == ""


def test_html_escapes_what_it_shows_and_makes_bold_what_is_bold():
    text = to_html(TABLE)
    assert "<caption>Times</caption>" in text and "a&lt;b" in text and "<b>1.00</b>" in text and "here" not in text
    assert '<td>a&lt;b</td><td class="num">' in text
    assert to_html(Note("1 < 2")) == '<p class="soft">1 &lt; 2</p>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "figure", "word"), [("minilm-mx", "models", " dB</td>"), ("compile", "compile", "disk")]
)
def test_the_page_has_the_tables_of_a_model_below_its_chart(file, figure, word):
    pytest.importorskip("altair")
    figures, _ = figures_of(read(MODELS / f"{file}.json"))
    (found,) = (f for f in figures if f["name"] == figure)
    assert any(word in part for part in found["tables"]) and "<table>" in found["tables"][0]
