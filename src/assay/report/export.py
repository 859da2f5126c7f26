"""Writes records to files: CSV for spreadsheets, Parquet for data frames, JSON for Assay itself, depending on the
suffix."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from assay.bench.evidence import BenchEvidence
from assay.check.evidence import CheckEvidence
from assay.errors import UsageError
from assay.evidence import at, figures, typed
from assay.record import Record, document

_FIRST = {
    "run": "run",
    "verb": "verb",
    "kernel": "kernel",
    "op": "op",
    "backend": "backend",
    "workload": "workload",
    "dtype": "dtype",
    "status": "status",
    "reason": "reason",
    "device": "device",
    "commit": "commit",
    "assay_commit": "assay_commit",
    "time_utc": "provenance.time",
    "took_s": "seconds",
    "median_s": "median",
    "low_s": "interval.0",
    "high_s": "interval.1",
}
_DERIVED = ("op", "backend", "dtype", "device", "commit", "assay_commit")
"""Columns that are properties of a record, not fields."""
_LAST = {
    "replay": "replay",
    "source_file": "source.file",
    "source_line": "source.line",
    "source_hash": "source.hash",
}
"""Columns that every record has, and the path of their value in the record."""
_FIGURES = tuple(f for cls in (BenchEvidence, CheckEvidence) for f in figures(cls) if f.column)
KINDS: dict[str, type] = {
    **{name: float if name.endswith("_s") else str for name in _FIRST},
    **{figure.column: figure.kind for figure in _FIGURES},
    **{name: int if name == "source_line" else str for name in _LAST},
}
"""The columns of a flat record in order, with the unit in the name, and their types."""
_SAMPLES = {"samples_s": "samples", "hot_samples_s": "evidence.hot.samples", "call_samples_s": "evidence.call.samples"}
_NESTED = ("evidence", "artifacts", "provenance")


def export(records: Iterable[Record], path: str | Path, **about: Any) -> int:
    """Write records to a file in the format of its suffix, and return their number. `about` goes into a JSON
    document."""
    path = Path(path)
    write = writer(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(records)
    write(kept, path, about)
    return len(kept)


def writer(path: Path) -> Callable[[list[Record], Path, dict[str, Any]], None]:
    """Return the function that writes a file with this name. Call it before reading records: it rejects unknown
    suffixes."""
    if path.suffix == ".parquet":
        _pyarrow()
        return _parquet
    if path.suffix not in (".csv", ".json"):
        raise UsageError(f"{path}: records are not written as '{path.suffix}'", fix="end it in .csv, .json or .parquet")
    return _csv if path.suffix == ".csv" else _json


def flat(record: Record) -> dict[str, Any]:
    """Return the columns of one record, with None for figures that it does not have."""
    whole = record.to_dict() | {name: getattr(record, name) for name in _DERIVED}
    own = {name: typed(KINDS[name], at(whole, where)) for name, where in (_FIRST | _LAST).items()}
    own |= {figure.column: figure.value(record.evidence) for figure in _FIGURES}
    return {name: own[name] for name in KINDS}


def _csv(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, KINDS)
        rows.writeheader()
        rows.writerows(flat(r) for r in records)


def _json(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    path.write_text(json.dumps(document(records, **about), indent=1, default=str) + "\n")


def _parquet(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    """Write the flat columns, every sample by round, and the parts without a fixed form as JSON text."""
    pa = _pyarrow()
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema(
        [
            *((name, kinds[kind]) for name, kind in KINDS.items()),
            *((name, pa.list_(pa.list_(pa.float64()))) for name in _SAMPLES),
            *((name, pa.string()) for name in _NESTED),
        ]
    )
    rows = []
    for record in records:
        whole = record.to_dict()
        samples = {name: at(whole, where) for name, where in _SAMPLES.items()}
        nested = {name: json.dumps(whole[name], default=str) for name in _NESTED}
        rows.append(flat(record) | samples | nested)
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", fix="pip install pyarrow") from None
    return pyarrow
