"""A record as a row: the whole of it as JSON text, which is the truth, and columns drawn from it to search by."""

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
"""Characters of a column: PostgreSQL refuses to index values of more than some 2700 bytes."""


def to_row(record: Record) -> dict[str, Any]:
    kept = _plain(record)
    whole, about = kept.to_dict(), kept.provenance
    columns = traits(kept) | {
        "run": kept.run,
        "verb": kept.verb,
        "kernel": kept.kernel,
        "workload": kept.workload,
        "status": str(kept.status),
        "commit": str(about.get("commit") or ""),
        "time": when.parsed(str(about.get("time"))) or when.now(),
    }
    fitted = {name: fit(value) for name, value in columns.items()}
    return {"key": _key(whole), **fitted, "median": kept.median, "record": json.dumps(whole)}


def from_row(text: str) -> Record:
    return _records().validate_python(json.loads(text))


def traits(record: Record) -> dict[str, str]:
    """What a record is searched by besides its own fields."""
    return {"op": record.op, "backend": record.backend, "dtype": record.dtype, "device": record.device}


def fit(value: str) -> str:
    """As a column can hold it. One that is too long ends in its hash, so that two of them stay two."""
    value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(value) <= _LONGEST:
        return value
    return value[: _LONGEST - 17] + "…" + hashlib.sha256(value.encode()).hexdigest()[:16]


def _plain(record: Record) -> Record:
    """The record as it will be read back, so that what cannot be read is refused at the door. Half of a surrogate pair
    (undecodable output of some tool) is no text to a database: it becomes U+FFFD."""
    text = json.dumps(record.to_dict(), default=str, ensure_ascii=False)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return from_row(whole)


def _key(whole: dict[str, Any]) -> str:
    """Two records are the same if all their fields are. One left at its default does not count: a field that a later
    version adds must not make a new record of an old one."""
    told = {name: json.dumps(value, sort_keys=True) for name, value in whole.items()}
    said = {name: text for name, text in told.items() if text != _defaults().get(name)}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


@cache
def _defaults() -> dict[str, str]:
    plain = {f.name: f.default for f in fields(Record) if f.default is not MISSING}
    made = {f.name: f.default_factory() for f in fields(Record) if f.default_factory is not MISSING}
    return {name: json.dumps(value) for name, value in (plain | made).items()}


@cache
def _records() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)
