"""Compares the code of kernels with that of the same kernels in an older document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from assay.inspect.diff import described, difference
from assay.inspect.evidence import InspectEvidence, SinceEvidence
from assay.inspect.row import Row
from assay.record import Record, Status, namesakes

Point = tuple[str, str, str]
"""Kernel (with its file, if several files have that address), workload, target."""


def changes(old: Iterable[Record], new: Iterable[Record]) -> Iterator[Record]:
    """Yield a record for each function that the new records are about: `pass` if its machine code is the same, else
    `inconclusive` with a description of the changes and the names of both compilers; `skipped` if the older document
    does not have the kernel at that workload and target. A change by itself is not a failure, but a kernel that does
    not compile any more, or breaks a gate, fails as in `inspect`."""
    old, new = list(old), list(new)
    apart = namesakes(old) | namesakes(new)
    before, after = _by_point(old, apart), _by_point(new, apart)
    for record in new:
        if record.failed and not record.instructions:
            yield _bare(record, Status.FAIL, record.reason, SinceEvidence(InspectEvidence.of(record).target))
    for point, functions in after.items():
        yield from _changed(before.get(point, {}), functions)


def _changed(before: dict[str, Record], after: dict[str, Record]) -> Iterator[Record]:
    """Compare the functions of one kernel at one point, by name. Functions under other names than before are compared
    in the order of their launches."""
    gone = [name for name in before if name not in after]
    for name, record in after.items():
        if name in before:
            yield _compared(before[name], record)
        elif gone:
            earlier = gone.pop(0)
            compared = _compared(before[earlier], record)
            status = Status.FAIL if compared.failed else Status.INCONCLUSIVE
            yield replace(compared, status=status, reason=f"{earlier} is now {name}; {compared.reason}")
        elif before:
            evidence = SinceEvidence(InspectEvidence.of(record).target)
            yield _bare(record, Status.INCONCLUSIVE, f"{name} is launched in addition", evidence)
        else:
            evidence = SinceEvidence(InspectEvidence.of(record).target)
            why = "the older document does not have it at this workload and target"
            yield _bare(record, Status.SKIPPED, why, evidence)
    last = next(reversed(after.values()))
    for name in gone:
        evidence = SinceEvidence(InspectEvidence.of(last).target)
        yield _bare(last, Status.INCONCLUSIVE, f"{name} is not launched any more", evidence)


def _compared(earlier: Record, record: Record) -> Record:
    was, now = InspectEvidence.of(earlier), InspectEvidence.of(record)
    compilers, hashes = [was.compiler, now.compiler], [was.text_hash, now.text_hash]
    changed = earlier.source.get("hash") != record.source.get("hash")
    evidence = SinceEvidence(now.target, compilers, hashes, changed)
    if hashes[0] == hashes[1]:
        status, reason = Status.PASS, f"the same machine code ({compilers[1]})"
    else:
        differences = difference(_rows(earlier), _rows(record))
        assert was.summary and now.summary
        words = described(differences, was.summary, now.summary, ("before", "now"))
        by = compilers[0] if compilers[0] == compilers[1] else " → ".join(compilers)
        why = "the source changed too" if changed else "the source is the same"
        status, reason = Status.INCONCLUSIVE, f"{by}, {why}: {words}"
        evidence = replace(evidence, counts=differences.counts)
    if record.failed:
        status, reason = Status.FAIL, f"{record.reason}; {reason}"
    return _bare(record, status, reason, evidence)


def _bare(record: Record, status: Status, reason: str, evidence: SinceEvidence) -> Record:
    """Return the record of a comparison, without the code."""
    return replace(record, status=status, reason=reason, evidence=evidence.to_dict(), instructions=None, artifacts=[])


def _by_point(records: list[Record], apart: set[str]) -> dict[Point, dict[str, Record]]:
    """Return the records that have code, by point and by the name of the function."""
    result: dict[Point, dict[str, Record]] = {}
    for record in records:
        if record.verb == "inspect" and record.instructions:
            evidence = InspectEvidence.of(record)
            point = record.named(apart), record.workload, evidence.target
            result.setdefault(point, {})[evidence.name] = record
    return result


def _rows(record: Record) -> list[Row]:
    """Return the rows of a record, with tuples in place of JSON's lists."""
    names = {f.name for f in fields(Row)}
    return [Row(**{k: _tuples(v) for k, v in row.items() if k in names}) for row in record.instructions or ()]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
