"""From what `inspect` found to what its page shows: the texts beside the rows, and numbers that were measured of it."""

from collections.abc import Iterable
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
    """`records`: bench's, of which those of the very same machine code are shown (joined on the hash of its .text)."""
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
    """Every file that a row names and that is still there."""
    named = dict.fromkeys(
        file for row in rows for file in (row["source_file"], *(f for f, _ in row["inlined"])) if file
    )
    found = {}
    for file in named:
        try:
            found[file] = Path(file).read_text(errors="replace")
        except OSError:
            continue
    return found


def _measured(text_hash: str, records: Iterable[Record]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for r in records:
        if r.verb == "bench" and r.median and any(a.get("text_hash") == text_hash for a in r.artifacts):
            evidence = BenchEvidence.of(r)
            limit = f", {evidence.roofline.share:.0%} of the limit" if evidence.roofline else ""
            found.append((r.workload, f"{si(r.median, 's')} cold, {evidence.gbps or 0:.0f} GB/s{limit}"))
    return found[-6:]
