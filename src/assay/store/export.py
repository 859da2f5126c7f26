"""Records out: CSV for spreadsheets, Parquet for data frames, JSON for Assay itself. The suffix chooses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.record import Record, document
from assay.store.row import traits

COLUMNS = {
    "run": "run",
    "verb": "verb",
    "kernel": "kernel",
    "op": "column.op",
    "backend": "column.backend",
    "workload": "workload",
    "dtype": "column.dtype",
    "status": "status",
    "reason": "reason",
    "device": "column.device",
    "commit": "provenance.commit",
    "time_utc": "provenance.time",
    "took_s": "seconds",
    "median_s": "median",
    "low_s": "interval.0",
    "high_s": "interval.1",
    "hot_median_s": "evidence.hot.median",
    "hot_low_s": "evidence.hot.interval.0",
    "hot_high_s": "evidence.hot.interval.1",
    "call_median_s": "evidence.call.median",
    "call_low_s": "evidence.call.interval.0",
    "call_high_s": "evidence.call.interval.1",
    "baseline": "evidence.baseline",
    "speedup": "evidence.speedup.median",
    "speedup_low": "evidence.speedup.interval.0",
    "speedup_high": "evidence.speedup.interval.1",
    "moved_bytes": "evidence.bytes",
    "operations": "evidence.operations",
    "bandwidth_gb_per_s": "evidence.gbps",
    "rate_tflop_per_s": "evidence.tflops",
    "copy_median_s": "evidence.copy.median",
    "share_of_copy": "evidence.share_of_copy",
    "roofline_bound": "evidence.roofline.bound",
    "roofline_s": "evidence.roofline.seconds",
    "share_of_roofline": "evidence.roofline.share",
    "roofline_model": "evidence.roofline.model",
    "peak_bytes": "evidence.peak_bytes",
    "launches": "evidence.launches",
    "compile_s": "evidence.compile_seconds",
    "rounds": "evidence.rounds",
    "batch_calls": "evidence.batch",
    "method": "evidence.method",
    "threads": "evidence.threads",
    "sm_clock_mhz": "evidence.clocks.sm_mhz",
    "temperature_celsius": "evidence.clocks.celsius",
    "power_w": "evidence.clocks.watts",
    "second_clock_s": "evidence.second_clock.seconds",
    "workloads": "evidence.workloads",
    "replay": "replay",
    "source_file": "source.file",
    "source_line": "source.line",
    "source_hash": "source.hash",
}
"""A flat record: name, unit included, and where in it the value lies (`column.`: drawn from it)."""

_WHOLE = frozenset(
    (
        "moved_bytes",
        "operations",
        "peak_bytes",
        "launches",
        "rounds",
        "batch_calls",
        "threads",
        "workloads",
        "source_line",
    )
)
_REAL = frozenset(("speedup", "speedup_low", "speedup_high", "share_of_copy", "share_of_roofline"))
_UNITS = ("_s", "_mhz", "_celsius", "_w")
_SAMPLES = {"samples_s": "samples", "hot_samples_s": "evidence.hot.samples", "call_samples_s": "evidence.call.samples"}
_NESTED = ("evidence", "artifacts", "provenance")


def export(records: Iterable[Record], path: str | Path, **about: Any) -> int:
    """Write records to a file whose suffix says how; gives how many there were. `about` goes into a JSON document."""
    path = Path(path)
    write = writer(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(records)
    write(kept, path, about)
    return len(kept)


def writer(path: Path) -> Callable[[list[Record], Path, dict[str, Any]], None]:
    """How a file of this name is written; asked before anything is read, so that a wrong suffix costs nothing."""
    if path.suffix == ".parquet":
        _pyarrow()
        return _parquet
    if path.suffix not in (".csv", ".json"):
        raise UsageError(f"{path}: nothing is written as '{path.suffix}'", fix="end it in .csv, .json or .parquet")
    return _csv if path.suffix == ".csv" else _json


def flat(record: Record) -> dict[str, Any]:
    """The columns of one record; None where it has no such figure."""
    whole = record.to_dict() | {"column": traits(record)}
    return {name: _typed(name, _at(whole, where)) for name, where in COLUMNS.items()}


def _csv(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS)
        rows.writeheader()
        rows.writerows(flat(r) for r in records)


def _json(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    path.write_text(json.dumps(document(records, **about), indent=1, default=str) + "\n")


def _parquet(records: list[Record], path: Path, about: dict[str, Any]) -> None:
    """The same columns, every sample by round, and what has no fixed shape as JSON text."""
    pa = _pyarrow()
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema(
        [
            *((name, kinds[_kind(name)]) for name in COLUMNS),
            *((name, pa.list_(pa.list_(pa.float64()))) for name in _SAMPLES),
            *((name, pa.string()) for name in _NESTED),
        ]
    )
    rows = []
    for record in records:
        whole = record.to_dict()
        samples = {name: _at(whole, where) for name, where in _SAMPLES.items()}
        nested = {name: json.dumps(whole[name], default=str) for name in _NESTED}
        rows.append(flat(record) | samples | nested)
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


def _kind(name: str) -> type:
    if name in _WHOLE:
        return int
    return float if name in _REAL or name.endswith(_UNITS) else str


def _typed(name: str, value: Any) -> Any:
    """Evidence is free in form: a value that is not what its column holds is left out, not written as another."""
    kind = _kind(name)
    if value is None or kind is str:
        return value if value is None else str(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is float:
        return float(value)
    return value if isinstance(value, int) and abs(value) < 1 << 63 else None


def _at(whole: Any, where: str) -> Any:
    for name in where.split("."):
        if isinstance(whole, dict):
            whole = whole.get(name)
        elif isinstance(whole, list | tuple) and name.isdigit() and int(name) < len(whole):
            whole = whole[int(name)]
        else:
            return None
    return whole


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", fix="pip install pyarrow") from None
    return pyarrow
