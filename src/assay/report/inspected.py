"""From an inspection to what its page shows: the rows, the texts beside them, and the times that were measured."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.bench.evidence import BenchEvidence
from assay.inspect import Inspection
from assay.record import Record
from assay.report.code import Code
from assay.units import si

_SHOWN = (
    "instructions",
    "registers",
    "stack",
    "spills",
    "shared",
    "occupancy",
    "mix",
    "widths",
    "multiply_add",
    "loops",
)


def code(one: Inspection, records: Iterable[Record] = ()) -> Code:
    """Return the page's data. `records`: bench's; those of the same machine code (by the hash of its .text) are
    shown."""
    assert one.table is not None
    rows, evidence, kept = one.record.instructions or [], one.evidence, one.record.evidence
    summary = {k: v for k, v in kept["summary"].items() if k in _SHOWN and v not in (None, {}, [])}
    if "launch" in kept:
        summary = {"launch": kept["launch"], **summary}
    return Code(
        one.record.kernel,
        evidence.target,
        evidence.symbol,
        evidence.compiler,
        rows,
        _sources(rows),
        one.ptx,
        one.ir,
        one.ir_kind,
        kept["blocks"],
        summary,
        heading=_measured(evidence.text_hash, records),
    )


def _sources(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the text of every file that a row names and that still exists."""
    named = dict.fromkeys(
        file for row in rows for file in (row["source_file"], *(f for f, _ in row["inlined"])) if file
    )
    texts = {}
    for file in named:
        with suppress(OSError):
            texts[file] = Path(file).read_text(errors="replace")
    return texts


def _measured(text_hash: str, records: Iterable[Record]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for r in records:
        if r.verb == "bench" and r.median and any(a.get("text_hash") == text_hash for a in r.artifacts):
            evidence = BenchEvidence.of(r)
            limit = f", {evidence.roofline.share:.0%} of the limit" if evidence.roofline else ""
            lines.append((r.workload, f"{si(r.median, 's')} cold, {evidence.gbps or 0:.0f} GB/s{limit}"))
    return lines[-6:]
