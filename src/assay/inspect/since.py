"""What the toolchain changed: the code of the same kernels in an older document, beside the code of now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from assay.inspect.diff import difference, told
from assay.inspect.row import Row
from assay.record import Record, Status, namesakes


def changes(old: Iterable[Record], new: Iterable[Record]) -> Iterator[Record]:
    """One record per kernel, workload and target that both have: `pass` where the machine code is the same, else
    `inconclusive` with what changed in words, and both compilers' names. A change is no failure: gates are for that."""
    old, new = list(old), list(new)
    apart = namesakes(old) | namesakes(new)
    before = {_key(r, apart): r for r in old if r.verb == "inspect" and r.instructions}
    for record in new:
        earlier = before.get(_key(record, apart))
        if not record.instructions or earlier is None:
            continue
        compilers = [r.evidence["compiler"] for r in (earlier, record)]
        hashes = [r.evidence["text_hash"] for r in (earlier, record)]
        evidence: dict[str, Any] = {
            "target": record.evidence["target"],
            "compilers": compilers,
            "text_hashes": hashes,
            "source_changed": earlier.source.get("hash") != record.source.get("hash"),
        }
        if hashes[0] == hashes[1]:
            reason = f"the same machine code ({compilers[1]})"
            yield replace(record, status=Status.PASS, reason=reason, evidence=evidence, instructions=None, artifacts=[])
            continue
        found = difference(_rows(earlier), _rows(record))
        words = told(found, earlier.evidence["summary"], record.evidence["summary"], ("before", "now"))
        by = compilers[0] if compilers[0] == compilers[1] else " → ".join(compilers)
        why = "the source changed too" if evidence["source_changed"] else "the source is the same"
        evidence["counts"] = found.counts
        reason = f"{by}, {why}: {words}"
        yield replace(
            record, status=Status.INCONCLUSIVE, reason=reason, evidence=evidence, instructions=None, artifacts=[]
        )


def _key(record: Record, apart: set[str]) -> tuple[str, str, str, str]:
    return record.named(apart), record.workload, str(record.evidence.get("target")), str(record.evidence.get("name"))


def _rows(record: Record) -> list[Row]:
    """As they were written; JSON has lists where rows have tuples."""
    names = {f.name for f in fields(Row)}
    return [Row(**{k: _tuples(v) for k, v in told.items() if k in names}) for told in record.instructions or ()]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
