"""Converts records to rows: the whole record as JSON text, and columns derived from it to search by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.record import Record
from assay.store import when

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LONGEST = 500
"""The most characters of a column: PostgreSQL refuses to index values of more than about 2700 bytes."""


def to_row(record: Record) -> dict[str, Any]:
    kept = _plain(record)
    whole = kept.to_dict()
    columns = {
        "op": kept.op,
        "backend": kept.backend,
        "dtype": kept.dtype,
        "device": kept.device,
        "run": kept.run,
        "verb": kept.verb,
        "kernel": kept.kernel,
        "workload": kept.workload,
        "status": str(kept.status),
        "commit": kept.commit,
        "time": when.parsed(str(kept.provenance.get("time"))) or when.now(),
    }
    fitted = {name: fit(value) for name, value in columns.items()}
    return {"key": _key(whole), **fitted, "median": kept.median, "record": json.dumps(whole)}


def from_row(text: str) -> Record:
    return _records().validate_python(json.loads(text))


def fit(value: str) -> str:
    """Return the value as a column can hold it. A long one ends in its hash, so that two long values stay different."""
    value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(value) <= _LONGEST:
        return value
    return value[: _LONGEST - 17] + "…" + hashlib.sha256(value.encode()).hexdigest()[:16]


def _plain(record: Record) -> Record:
    """Return the record as it will be read back, and raise an error if it could not be. Half of a surrogate pair
    (undecodable output of some tool) is not valid text for a database: it becomes U+FFFD."""
    text = json.dumps(record.to_dict(), default=str, ensure_ascii=False)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return from_row(whole)


def _key(whole: dict[str, Any]) -> str:
    """Return a key, the same for records with the same fields. Fields at their defaults do not count: one that a later
    version adds must not make a new record of an old one."""
    texts = {name: json.dumps(value, sort_keys=True) for name, value in whole.items()}
    given = {name: text for name, text in texts.items() if text != _defaults().get(name)}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:32]


@cache
def _defaults() -> dict[str, str]:
    plain = {f.name: f.default for f in fields(Record) if f.default is not MISSING}
    made = {f.name: f.default_factory() for f in fields(Record) if f.default_factory is not MISSING}
    return {name: json.dumps(value) for name, value in (plain | made).items()}


@cache
def _records() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)
