"""What the page opens with: how many kernels are right, which is fastest per op, and what failed."""

from collections.abc import Sequence
from typing import Any

from assay import units
from assay.check.evidence import CheckEvidence
from assay.record import Record
from assay.report import rows
from assay.report.rows import SEVERITY, Row


def counts(records: Sequence[Record]) -> dict[str, int]:
    """Kernels by status: as good as the worst of its checks, and failed if a measurement of it did. Without checks, as
    good as the worst of its measurements."""
    checked = any(r.verb == "check" for r in records)
    judged = [
        r for r in records if r.verb == "check" or (r.verb == "bench" and (not checked or str(r.status) == "fail"))
    ]
    worst: dict[str, int] = {}
    for record in judged:
        worst[record.kernel] = max(worst.get(record.kernel, 0), SEVERITY.index(str(record.status)))
    ranks = list(worst.values())
    return {status: ranks.count(i) for i, status in enumerate(SEVERITY)}


def headline(records: Sequence[Record]) -> str:
    found = {s: n for s, n in counts(records).items() if n}
    total = sum(found.values())
    if not total:
        return f"{units.count(len(records), 'record')}"
    checked = any(r.verb == "check" for r in records)
    word = "pass" if checked else "could be measured"
    if found.get("pass") == total:
        return f"All {units.count(total, 'kernel')} {word}." if total > 1 else f"The kernel {word}{'es' * checked}."
    rest = [f"{n} {VERBS.get(s, s)}" for s in reversed(SEVERITY[1:]) if (n := found.get(s))]
    return f"{found.get('pass', 0)} of {units.count(total, 'kernel')} {word}; {', '.join(rest)}."


VERBS = {"fail": "failed", "compiled": "compiled only", "skipped": "skipped"}


def scope(records: Sequence[Record]) -> list[str]:
    """What the numbers cover, in a line."""
    checked = [r for r in records if r.verb == "check"]
    measured = rows.benches(records)
    told = []
    if checked:
        tried = sum(CheckEvidence.of(r).workloads or 0 for r in checked)
        told.append(f"{units.count(len(checked), 'check')} over {units.count(tried, 'workload')}")
    if measured:
        told.append(
            f"{units.count(len(measured), 'measurement')} of {units.count(_distinct(measured, 'case'), 'case')}"
        )
    if ops := {row["op"] for r in records if (row := rows.common(r))["op"] and r.verb in ("check", "bench")}:
        told.append(units.count(len(ops), "op"))
    if caught := [r for r in records if r.verb == "selftest"]:
        told.append(f"the tester caught {sum(str(r.status) == 'pass' for r in caught)} of {len(caught)} wrong kernels")
    return told


def fastest(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Per op and device the fastest kernel that is right, at the best filled and largest case; how often it wins."""
    wrong = {(r.kernel, r.dtype) for r in records if r.verb == "check" and str(r.status) == "fail"}
    measured = rows.benches(records)
    right = [r for r in measured if r["status"] == "pass" and (r["kernel"], r["dtype"]) not in wrong]
    by_case: dict[str, list[Row]] = {}
    for row in right:
        by_case.setdefault(row["case"], []).append(row)
    winners = {case: min(group, key=lambda r: r["seconds"]) for case, group in by_case.items()}
    told, seen = [], set()
    for case in rows.cases(right):
        best = winners[case]
        place = (best["op"], best["place"])
        if place in seen:
            continue
        seen.add(place)
        peers = [w for w in winners.values() if (w["op"], w["place"]) == place]
        slow = min((r["seconds"] for r in measured if r["case"] == case and r not in right), default=None)
        told.append(
            best
            | {
                "time": units.scaled(best["seconds"], "s"),
                "bandwidth": units.scaled(best["rate"], "B/s", 3),
                "wins": sum(w["kernel"] == best["kernel"] for w in peers),
                "of": len(peers),
                "rivals": len(by_case[case]) - 1,
                "wrong_but_faster": slow is not None and slow < best["seconds"],
            }
        )
    return told


def failures(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if str(r.status) == "fail"]


def _distinct(found: Sequence[Row], field: str) -> int:
    return len({row[field] for row in found})
