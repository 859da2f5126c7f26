"""Records as flat rows: one per record, with the numbers that a chart draws and the texts that its tooltip shows.

Every row has the fields that the page filters by (`op`, `backend`, `dtype`, `status`, `device`, `text`)."""

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from assay import units
from assay.bench.evidence import BenchEvidence
from assay.check.evidence import CheckEvidence
from assay.record import Record, Status, namesakes
from assay.store.current import current_records

Row = dict[str, Any]
SEVERITY = ("skipped", "pass", "compiled", "inconclusive", "fail")
"""A cell or a kernel has the last of its records' statuses in this order, from best to worst. `skipped` is the first,
since it says nothing about a kernel: a cell or a kernel is skipped only if all of its records are."""
NOT_AXES = ("dtype", "seed", "values", "offset", "strided", "without", "inplace")


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the records that describe the current state. If kernels of several files share an address, the kernel's
    name contains both address and file."""
    kept = current_records(records)
    apart = namesakes(kept)
    return [replace(r, kernel=r.named(apart)) if r.kernel in apart else r for r in kept]


def device(record: Record) -> str:
    """Return the chip that a record's kernel ran on; for a CPU, with its cores."""
    made, name = record.provenance, record.device
    cores = made.get("cores") if name and name == made.get("cpu") else None
    return f"{name}, {units.count(cores, 'core')}" if cores else name or str(record.evidence.get("device") or "")


def parts(workload: str) -> dict[str, str]:
    """Return the parts of `rows=3,cols=5,dtype=bf16` by name."""
    return {k: v for k, e, v in (p.partition("=") for p in workload.split(",")) if e}


def axes(workload: str) -> dict[str, int]:
    """Return the integer axes of a workload, over which it can be swept."""
    return {k: int(v) for k, v in parts(workload).items() if k not in NOT_AXES and re.fullmatch(r"\d+", v)}


def shape(workload: str) -> str:
    """Return the workload without its dtype: `rows=4096 · cols=1024`."""
    return " · ".join(f"{k}={v}" for k, v in parts(workload).items() if k != "dtype")


def common(record: Record) -> Row:
    """Return the fields that every row has."""
    return {
        "op": record.op,
        "backend": record.backend,
        "way": record.address.partition("/")[2],
        "kernel": record.kernel,
        "dtype": record.dtype,
        "status": str(record.status),
        "device": device(record),
        "workload": record.workload,
        "text": f"{record.verb} {record.kernel} {record.workload} {record.reason}".lower(),
    }


def checks(records: Iterable[Record]) -> list[Row]:
    """Return one row per check: its status, and the worst error as a share of its tolerance."""
    rows = []
    for record in (r for r in records if r.verb == "check"):
        evidence, rank = CheckEvidence.of(record), SEVERITY.index(str(record.status))
        rows.append(
            common(record)
            | {
                "skipped": int(record.status is Status.SKIPPED),
                "share": evidence.worst_share,
                "weight": rank * 1e6 + (evidence.worst_share or 0.0),
                "workloads": evidence.workloads or 0,
                "reason": record.reason.splitlines()[0] if record.reason else "",
            }
        )
    return rows


def benches(records: Iterable[Record]) -> list[Row]:
    """Return one row per measured kernel and workload. A kernel without a time is not drawn, but listed by the page as
    a failure."""
    return [row for _, row in _timed(records)]


def _timed(records: Iterable[Record]) -> list[tuple[Record, Row]]:
    """Return the measured records with their rows. If kernels ran in several places, a case includes its place, since
    times of different places are not compared."""
    timed = [r for r in records if r.verb == "bench" and (number(r.median) or 0) > 0]
    several = len({place(r) for r in timed}) > 1
    return [(r, _bench(r, several)) for r in timed]


def place(record: Record) -> str:
    """Return the device that a kernel was timed on and, for a CPU, the number of threads."""
    threads = BenchEvidence.of(record).threads
    return device(record) + (f", {units.count(threads, 'thread')}" if threads is not None else "")


def _bench(record: Record, several_places: bool) -> Row:
    row, evidence = common(record), BenchEvidence.of(record)
    median = float(record.median or 0)
    low, high = record.interval or (median, median)
    speedup, roofline = evidence.speedup, evidence.roofline
    faster = speedup.median if speedup else None
    moved, done = evidence.bytes or 0, evidence.operations or 0
    copied = evidence.copy.median if evidence.copy else 0
    limit = roofline.share if roofline else None
    case = [row["op"], shape(record.workload), row["dtype"], *([place(record)] if several_places else [])]
    return row | {
        "case": " · ".join(filter(None, case)),
        "place": place(record),
        "run": record.run,
        "seconds": median,
        "low": low,
        "high": high,
        "baseline": evidence.baseline,
        "speedup": faster,
        "speedup_low": speedup.interval[0] if speedup and speedup.interval else faster,
        "speedup_high": speedup.interval[1] if speedup and speedup.interval else faster,
        "bytes": moved,
        "rate": moved / median or None,
        "copy_rate": moved / copied if copied and moved else None,
        "copy_share": evidence.share_of_copy,
        "copy_seconds": copied or None,
        "flops": done / median or None,
        "intensity": done / moved if done and moved else None,
        "limit_share": limit,
        "limit_seconds": roofline.seconds if roofline else None,
        "bound": roofline.bound if roofline else "",
        "model": roofline.model if roofline else "",
        "converged": evidence.converged is not False,
        "Notes": "; ".join(notes(record.status, evidence)) or units.NOTHING,
        "Time": units.between(median, (low, high), "s"),
        "Label": units.si(median, "s") + " ?" * (record.status is Status.INCONCLUSIVE),
        "Faster": units.times(faster),
        "Speedup": f"{units.times(faster)} over {evidence.baseline}" if faster else units.NOTHING,
        "Bandwidth": units.si(moved / median or None, "B/s"),
        "Compute": units.si(done / median or None, "FLOP/s"),
        "Share of the limit": units.share(limit, 1),
        "Share of a copy": units.share(evidence.share_of_copy, 1),
        "Intensity": f"{done / moved:.3g} FLOP/B" if done and moved else units.NOTHING,
    }


def notes(status: Status, evidence: BenchEvidence) -> list[str]:
    """Return the caveats of a time: it is inconclusive or did not converge, the chip was throttled, two clocks
    disagree, or several kernels were launched."""
    clocks, second = evidence.clocks, evidence.second_clock
    result = []
    if status is Status.INCONCLUSIVE:
        result.append("inconclusive")
    if evidence.converged is False:
        result.append("not converged: the interval is wider than asked for")
    if clocks and clocks.throttle:
        result.append(f"throttled: {', '.join(clocks.throttle)}")
    if second and second.agrees is False:
        result.append(f"the second clock disagrees: {second.why or 'unexplained'}")
    if (evidence.launches or 0) > 1:
        result.append(f"{evidence.launches:g} kernels launched")
    return result


def samples(records: Iterable[Record]) -> list[Row]:
    """Return all samples: one row per kernel and clock, with the samples as lists."""
    rows = []
    for record, bench in _timed(records):
        evidence = BenchEvidence.of(record)
        others = {"hot": evidence.hot, "call": evidence.call}
        kinds = {"cold": record.samples} | {kind: times.samples for kind, times in others.items() if times}
        base = {field: bench[field] for field in SAMPLE_FIELDS}
        for kind, rounds in kinds.items():
            if not rounds:
                continue
            flat = [(float(f"{s:.5g}"), i + 1) for i, one in enumerate(rounds) for s in one]
            middle = statistics.median_high(s for s, _ in flat)
            more = {"clock": CLOCKS[kind], "sample": [s for s, _ in flat], "round": [i for _, i in flat]}
            rows.append(base | more | {"middle": middle, "Median": units.si(middle, "s")})
    return rows


CLOCKS = {"cold": "cold: inputs not in cache", "hot": "hot: the same buffers again", "call": "call: host to host"}
SAMPLE_FIELDS = ("op", "backend", "way", "kernel", "dtype", "status", "device", "workload", "text", "case", "bytes")


def cases(rows: Sequence[Row]) -> list[str]:
    """Return the cases (op, shape, dtype) in menu order: by op, those with the most kernels first, then the largest."""
    kernels: dict[str, set[str]] = {}
    size: dict[str, float] = {}
    ops: dict[str, str] = {}
    for row in rows:
        kernels.setdefault(row["case"], set()).add(row["kernel"])
        size[row["case"]] = max(size.get(row["case"], 0), row.get("bytes") or 0)
        ops[row["case"]] = row["op"]
    return sorted(kernels, key=lambda c: (ops[c], -len(kernels[c]), -size[c], c))


def number(value: Any) -> float | None:
    """Return the value if it is a finite number, else None: evidence is read from files and may contain anything."""
    return value if isinstance(value, int | float) and abs(value) < float("inf") else None
