"""Pairs the cells of two runs and applies the rule."""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assay import provenance
from assay.bench.evidence import BenchEvidence
from assay.compare.evidence import CompareEvidence, Measured
from assay.compare.rule import Change, Side, Verdict, judge
from assay.errors import UsageError
from assay.record import Record, Status, namesakes

Cell = tuple[str, str, str]
"""Kernel (with its file, if several files have that address), workload, device."""
_STATUS = {
    Verdict.SAME: Status.PASS,
    Verdict.FASTER: Status.PASS,
    Verdict.SLOWER: Status.FAIL,
    Verdict.AMBIGUOUS: Status.INCONCLUSIVE,
}


def compare(old: Iterable[Record], new: Iterable[Record]) -> Iterator[Record]:
    """Yield one record per cell that both runs have: `pass` (SAME or FASTER), `fail` (SLOWER), `inconclusive`
    (AMBIGUOUS); `skipped` for cells that only one has."""
    old, new = list(old), list(new)
    apart = namesakes(r for r in old if r.verb == "bench") | namesakes(r for r in new if r.verb == "bench")
    before, after = _cells(old, apart), _cells(new, apart)
    if not before or not after:
        missing = "old" if not before else "new"
        raise UsageError(f"the {missing} run holds no timed kernel", fix="take two runs of `assay bench`")
    both = [cell for cell in before if cell in after]
    if not both:
        raise UsageError("the two runs share no kernel, workload and device", fix="bench the same things twice")
    changes = judge([(_side(before[c]), _side(after[c])) for c in both])
    run = provenance.new_run()
    for cell, change in zip(both, changes, strict=True):
        yield _record(cell, before[cell], after[cell], change, run)
    for which, side, other in (("old", before, after), ("new", after, before)):
        for record in (r for cell, r in side.items() if cell not in other):
            yield Record(
                "compare",
                record.kernel,
                record.workload,
                Status.SKIPPED,
                f"only the {which} run has it",
                run,
                source=record.source,
                provenance=record.provenance,
            )


def _cells(records: Iterable[Record], apart: set[str]) -> dict[Cell, Record]:
    return {(r.named(apart), r.workload, r.device): r for r in records if r.verb == "bench" and r.samples}


def _side(record: Record) -> Side:
    clocks = BenchEvidence.of(record).clocks
    mhz = clocks.sm_mhz if clocks else None
    rounds = [statistics.median(r) for r in record.samples or [] if r]
    return Side(rounds, mhz * 1e6 if mhz else None)


def _record(cell: Cell, old: Record, new: Record, change: Change, run: str) -> Record:
    reason = f"{change.verdict}: {change.why}"
    tuned = {"old": BenchEvidence.of(old).parameters or {}, "new": BenchEvidence.of(new).parameters or {}}
    retuned = tuned["old"] != tuned["new"]
    if retuned:
        reason += f"; tunables: {_shown(tuned['old'])} → {_shown(tuned['new'])}"
    before, after = (Measured(r.run, r.median, r.commit or None) for r in (old, new))
    evidence = CompareEvidence(
        verdict=str(change.verdict),
        ratio=change.ratio,
        interval=change.interval,
        p=change.p,
        old=before,
        new=after,
        device=cell[2],
        source_changed=old.source.get("hash") != new.source.get("hash"),
        parameters=tuned if retuned else None,
    )
    return Record(
        "compare",
        new.kernel,
        cell[1],
        _STATUS[change.verdict],
        reason,
        run,
        evidence.to_dict(),
        new.replay,
        new.source,
        provenance=new.provenance,
    )


def _shown(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "the defaults"
