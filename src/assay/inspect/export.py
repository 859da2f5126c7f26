"""Writes the instructions of many kernels as one table, in CSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.inspect.evidence import InspectEvidence
from assay.record import Record


def export(records: Sequence[Record], file: Path, kind: str) -> None:
    """Write the rows, with kernel, workload, target and symbol as the first columns. `kind` is csv or parquet."""
    import pyarrow
    from pyarrow import csv, parquet

    rows = [
        {"kernel": r.kernel, "workload": r.workload, "target": e.target, "symbol": e.symbol}
        | {k: _flat(v) for k, v in row.items()}
        for r, e in ((r, InspectEvidence.of(r)) for r in records)
        for row in r.instructions or ()
    ]
    table = pyarrow.Table.from_pylist(rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "csv":
        csv.write_csv(table, file)
    else:
        parquet.write_table(table, file)


def _flat(value: Any) -> Any:
    """Return a list as text, since a column holds single values."""
    if isinstance(value, list | tuple):
        return " ".join(":".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for v in value)
    return value
