"""What the tables of a page share: a table in Markdown, an interval, and which study a record is of."""

from __future__ import annotations

from collections.abc import Sequence

from assay.record import Record


def study_of(record: Record) -> str:
    return "train" if record.workload.startswith("train ") else str(record.evidence.get("study"))


def table(heads: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """`name` is left, `:name` is right."""
    names = heads.split("|")
    lines = ["| " + " | ".join(n.lstrip(":") for n in names) + " |"]
    lines.append("|" + "|".join("---:" if n.startswith(":") else "---" for n in names) + "|")
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def spread(record: Record) -> str:
    assert record.median and record.interval
    return f"±{(record.interval[1] - record.interval[0]) / 2 / record.median:.1%}"
