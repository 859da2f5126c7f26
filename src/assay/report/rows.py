"""Records laid flat: one plain row per record, with the numbers a chart places and the words its hover says.

Every row carries the fields the page filters by (`op`, `backend`, `dtype`, `status`, `device`, `text`)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from assay import units
from assay.bench.evidence import BenchEvidence
from assay.check.evidence import CheckEvidence
from assay.record import Record, namesakes

Row = dict[str, Any]
SEVERITY = ("pass", "compiled", "skipped", "inconclusive", "fail")
"""From the best to the worst: a cell or a kernel is as good as its worst record."""
NOT_AXES = ("dtype", "seed", "values", "offset", "strided", "without", "inplace")


def latest(records: Iterable[Record]) -> list[Record]:
    """The last record of each kernel, workload and device: older ones are history, not the state of things. Where one
    address stands for kernels of several files, the kernel is called by both."""
    kept: dict[tuple[str, ...], Record] = {}
    every = list(records)
    apart = namesakes(every)
    told_apart = [replace(r, kernel=r.named(apart)) if r.kernel in apart else r for r in every]
    for record in sorted(told_apart, key=lambda r: str(r.provenance.get("time", ""))):
        more = (str(record.evidence.get("threads", "")), str(record.evidence.get("parameters", "")))
        key = (record.verb, record.kernel, record.workload, device(record), *more)
        kept.pop(key, None)
        kept[key] = record
    return list(kept.values())


def device(record: Record) -> str:
    """The chip a record's kernel ran on, a CPU with its cores."""
    made, name = record.provenance, record.device
    cores = made.get("cores") if name and name == made.get("cpu") else None
    return f"{name}, {units.count(cores, 'core')}" if cores else name or str(record.evidence.get("device") or "")


def parts(workload: str) -> dict[str, str]:
    """`rows=3,cols=5,dtype=bf16` by name."""
    return {k: v for k, e, v in (p.partition("=") for p in workload.split(",")) if e}


def axes(workload: str) -> dict[str, int]:
    """The whole-numbered axes of a workload, over which it can be swept."""
    return {k: int(v) for k, v in parts(workload).items() if k not in NOT_AXES and re.fullmatch(r"\d+", v)}


def shape(workload: str) -> str:
    """The workload without its dtype, sizes as people write them: `rows=4096 · cols=1024`."""
    return " · ".join(f"{k}={v}" for k, v in parts(workload).items() if k != "dtype")


def common(record: Record) -> Row:
    """What every row has."""
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
    """One row per check: its status, and the worst error as a share of its limit."""
    rows = []
    for record in (r for r in records if r.verb == "check"):
        evidence = CheckEvidence.of(record)
        worst = evidence.worst_share
        rows.append(
            common(record)
            | {
                "rank": SEVERITY.index(str(record.status)),
                "share": worst,
                "weight": SEVERITY.index(str(record.status)) * 1e6 + (worst or 0.0),
                "workloads": evidence.workloads or 0,
                "reason": record.reason.splitlines()[0] if record.reason else "",
            }
        )
    return rows


def benches(records: Iterable[Record]) -> list[Row]:
    """One row per measured kernel and workload. What gave no time is not drawn; the page lists it as a failure."""
    found = [r for r in records if r.verb == "bench" and (number(r.median) or 0) > 0]
    several = _several(found)
    return [_bench(r, several) for r in found]


def _several(records: Iterable[Record]) -> bool:
    """More than one place to run: then a case says which, for times of different places are not compared."""
    return len({_place(r) for r in records}) > 1


def _place(record: Record) -> str:
    """The device, and on a CPU how many threads were used."""
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
    case = [row["op"], shape(record.workload), row["dtype"], *([_place(record)] if several_places else [])]
    return row | {
        "case": " · ".join(filter(None, case)),
        "place": _place(record),
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
        "Notes": "; ".join(notes(evidence)) or units.NOTHING,
        "Time": units.between(median, (low, high), "s"),
        "Label": units.si(median, "s"),
        "Faster": units.times(faster),
        "Speedup": f"{units.times(faster)} over {evidence.baseline}" if faster else units.NOTHING,
        "Bandwidth": units.si(moved / median or None, "B/s"),
        "Compute": units.si(done / median or None, "FLOP/s"),
        "Share of the limit": units.share(limit, 1),
        "Share of a copy": units.share(evidence.share_of_copy, 1),
        "Intensity": f"{done / moved:.3g} FLOP/B" if done and moved else units.NOTHING,
    }


def notes(evidence: BenchEvidence) -> list[str]:
    """What a reader of a time must know: that it did not settle, that the chip was throttled, that clocks disagree."""
    clocks, second = evidence.clocks, evidence.second_clock
    found = []
    if evidence.converged is False:
        found.append("not converged: the interval is wider than asked for")
    if clocks and clocks.throttle:
        found.append(f"throttled: {', '.join(clocks.throttle)}")
    if second and second.agrees is False:
        found.append(f"the second clock disagrees: {second.why or 'unexplained'}")
    if (evidence.launches or 0) > 1:
        found.append(f"{evidence.launches:g} kernels launched")
    return found


def samples(records: Iterable[Record]) -> list[Row]:
    """Every sample of every measured kernel, as lists: one row per kernel and clock, spread out only when drawn."""
    rows = []
    found = [r for r in records if r.verb == "bench" and (number(r.median) or 0) > 0]
    several = _several(found)
    for record in found:
        evidence = BenchEvidence.of(record)
        others = {"hot": evidence.hot, "call": evidence.call}
        kinds = {"cold": record.samples} | {kind: times.samples for kind, times in others.items() if times}
        base = {k: v for k, v in _bench(record, several).items() if k in SAMPLE_FIELDS}
        for kind, rounds in kinds.items():
            if not rounds:
                continue
            flat = [(float(f"{s:.5g}"), i + 1) for i, one in enumerate(rounds) for s in one]
            ordered = sorted(s for s, _ in flat)
            middle = ordered[len(ordered) // 2]
            more = {"clock": CLOCKS[kind], "sample": [s for s, _ in flat], "round": [i for _, i in flat]}
            rows.append(base | more | {"middle": middle, "Median": units.si(middle, "s")})
    return rows


CLOCKS = {"cold": "cold: inputs not in cache", "hot": "hot: the same buffers again", "call": "call: host to host"}
SAMPLE_FIELDS = ("op", "backend", "way", "kernel", "dtype", "status", "device", "workload", "text", "case", "bytes")


def cases(rows: Sequence[Row]) -> list[str]:
    """The cases (op, shape, dtype) in the order they are offered: by op, the best filled and largest first."""
    kernels: dict[str, set[str]] = {}
    size: dict[str, float] = {}
    ops: dict[str, str] = {}
    for row in rows:
        kernels.setdefault(row["case"], set()).add(row["kernel"])
        size[row["case"]] = max(size.get(row["case"], 0), row.get("bytes") or 0)
        ops[row["case"]] = row["op"]
    return sorted(kernels, key=lambda c: (ops[c], -len(kernels[c]), -size[c], c))


def number(value: Any) -> float | None:
    """A finite number or nothing: evidence comes from files, and a chart must not stumble over what is not there."""
    return value if isinstance(value, int | float) and value == value and abs(value) != float("inf") else None
