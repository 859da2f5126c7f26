"""Compares the code of kernels with that of the same kernels in an older document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from assay.inspect.diff import described, difference
from assay.inspect.evidence import InspectEvidence, SinceEvidence
from assay.inspect.row import Row
from assay.record import Record, Status, namesakes


def changes(old: Iterable[Record], new: Iterable[Record]) -> Iterator[Record]:
    """Yield one record per kernel, workload and target in both: `pass` if the machine code is the same, else
    `inconclusive` with a description of the changes and the names of both compilers. A change is not a failure; only
    gates fail."""
    old, new = list(old), list(new)
    apart = namesakes(old) | namesakes(new)
    before = {_key(r, apart): r for r in old if r.verb == "inspect" and r.instructions}
    for record in new:
        earlier = before.get(_key(record, apart))
        if not record.instructions or earlier is None:
            continue
        was, now = InspectEvidence.of(earlier), InspectEvidence.of(record)
        compilers, hashes = [was.compiler, now.compiler], [was.text_hash, now.text_hash]
        changed = earlier.source.get("hash") != record.source.get("hash")
        evidence = SinceEvidence(now.target, compilers, hashes, changed)
        if hashes[0] == hashes[1]:
            reason = f"the same machine code ({compilers[1]})"
            yield _bare(record, Status.PASS, reason, evidence)
            continue
        differences = difference(_rows(earlier), _rows(record))
        assert was.summary and now.summary
        words = described(differences, was.summary, now.summary, ("before", "now"))
        by = compilers[0] if compilers[0] == compilers[1] else " → ".join(compilers)
        why = "the source changed too" if changed else "the source is the same"
        reason = f"{by}, {why}: {words}"
        yield _bare(record, Status.INCONCLUSIVE, reason, replace(evidence, counts=differences.counts))


def _bare(record: Record, status: Status, reason: str, evidence: SinceEvidence) -> Record:
    """Return the record of a comparison, without the code."""
    return replace(record, status=status, reason=reason, evidence=evidence.to_dict(), instructions=None, artifacts=[])


def _key(record: Record, apart: set[str]) -> tuple[str, str, str, str]:
    evidence = InspectEvidence.of(record)
    return record.named(apart), record.workload, evidence.target, evidence.name


def _rows(record: Record) -> list[Row]:
    """Return the rows of a record, with tuples in place of JSON's lists."""
    names = {f.name for f in fields(Row)}
    return [Row(**{k: _tuples(v) for k, v in row.items() if k in names}) for row in record.instructions or ()]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
