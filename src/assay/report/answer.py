"""The top of the page: how many kernels are correct, which is fastest per op, and what the numbers cover."""

from collections.abc import Sequence
from typing import Any

from assay import units
from assay.check.evidence import CheckEvidence
from assay.record import Record
from assay.report import rows
from assay.report.rows import SEVERITY, Row

_FEW_OPS = 6
WORDS = {"fail": "failed", "compiled": "compiled only", "skipped": "skipped"}


def counts(records: Sequence[Record]) -> dict[str, int]:
    """Return the number of kernels by status. A kernel has the worst status of its checks, and fails if any of its
    measurements failed; without checks, it has the worst status of its measurements. It is skipped only if all of them
    were: a kernel that is written for one dtype passes if it passes there."""
    checked = any(r.verb == "check" for r in records)
    worst: dict[str, int] = {}
    for record in records:
        status = str(record.status)
        if record.verb == "check" or (record.verb == "bench" and (not checked or status == "fail")):
            worst[record.kernel] = max(worst.get(record.kernel, 0), SEVERITY.index(status))
    ranks = list(worst.values())
    return {status: ranks.count(i) for i, status in enumerate(SEVERITY)}


def headline(records: Sequence[Record]) -> str:
    """Return one sentence: how many kernels pass, and the statuses of the others."""
    by_status = {s: n for s, n in counts(records).items() if n}
    total = sum(by_status.values())
    if not total:
        return units.count(len(records), "record")
    checked = any(r.verb == "check" for r in records)
    word = f"pass{'es' * (total == 1)}" if checked else "could be measured"
    passing = f"{by_status.get('pass', 0)} of {units.count(total, 'kernel')} {word}"
    rest = [f"{n} {WORDS.get(s, s)}" for s in reversed(SEVERITY) if s != "pass" and (n := by_status.get(s))]
    return f"{passing}; {', '.join(rest)}." if rest else f"{passing}."


def by_op(records: Sequence[Record]) -> list[str]:
    """Return a headline for each op, if there are several; with more than `_FEW_OPS`, only for ops with a
    failure."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.op and record.verb in ("check", "bench"):
            groups.setdefault(record.op, []).append(record)
    if len(groups) > _FEW_OPS:
        groups = {op: group for op, group in groups.items() if counts(group)["fail"]}
    elif len(groups) == 1:
        return []
    return [f"{op}: {headline(group).rstrip('.')}" for op, group in groups.items()]


def scope(records: Sequence[Record]) -> list[str]:
    """Return what the numbers cover, as the parts of a line."""
    parts = []
    if checked := [r for r in records if r.verb == "check"]:
        tried = sum(CheckEvidence.of(r).workloads or 0 for r in checked)
        parts.append(f"{units.count(len(checked), 'check')} over {units.count(tried, 'workload')}")
    if measured := rows.benches(records):
        cases = len({row["case"] for row in measured})
        parts.append(f"{units.count(len(measured), 'measurement')} of {units.count(cases, 'case')}")
    if ops := {r.op for r in records if r.op and r.verb in ("check", "bench")}:
        parts.append(units.count(len(ops), "op"))
    if caught := [r for r in records if r.verb == "selftest"]:
        parts.append(f"the tester caught {sum(str(r.status) == 'pass' for r in caught)} of {len(caught)} wrong kernels")
    return parts


def fastest(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return, per op and device, the fastest correct kernel at the largest of the cases with the most kernels, and how
    often it wins. Only kernels of one run are compared: those of different runs were not timed together."""
    wrong = {(r.kernel, r.dtype) for r in records if r.verb == "check" and str(r.status) == "fail"}
    measured = rows.benches(records)
    right = [r for r in measured if r["status"] == "pass" and (r["kernel"], r["dtype"]) not in wrong]
    by_case: dict[str, list[Row]] = {}
    for row in right:
        by_case.setdefault(row["case"], []).append(row)
    together = {case: _together(group) for case, group in by_case.items()}
    winners = {case: min(group, key=lambda r: r["seconds"]) for case, group in together.items()}
    result: dict[tuple[str, str], dict[str, Any]] = {}
    for case in rows.cases([row for group in together.values() for row in group]):
        best = winners[case]
        place = (best["op"], best["place"])
        if place in result:
            continue
        peers = [w for w in winners.values() if (w["op"], w["place"]) == place]
        wrong_ones = [r for r in measured if r["case"] == case and r["run"] == best["run"] and r not in right]
        others = {r["kernel"] for r in together[case]}
        result[place] = best | {
            "time": units.scaled(best["seconds"], "s"),
            "bandwidth": units.scaled(best["rate"], "B/s", 3),
            "wins": sum(w["kernel"] == best["kernel"] for w in peers),
            "of": len(peers),
            "rivals": len(others) - 1,
            "wrong_but_faster": any(r["seconds"] < best["seconds"] for r in wrong_ones),
            "not_together": sorted({r["kernel"] for r in by_case[case] if r["seconds"] < best["seconds"]} - others),
        }
    return list(result.values())


def _together(group: Sequence[Row]) -> list[Row]:
    """Return the rows of the run that timed the most of these kernels; of several such runs, the newest."""
    by_run: dict[str, list[Row]] = {}
    for row in group:
        by_run.setdefault(row["run"], []).append(row)
    return max(by_run.items(), key=lambda item: (len(item[1]), item[0]))[1]
