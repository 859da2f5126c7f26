"""Records laid flat: one plain row per record, with the numbers a chart places and the words its hover says.

Every row carries the fields the page filters by (`op`, `backend`, `dtype`, `status`, `device`, `text`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from assay import units
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
        worst = worst_share(record)
        rows.append(
            common(record)
            | {
                "rank": SEVERITY.index(str(record.status)),
                "share": worst,
                "weight": SEVERITY.index(str(record.status)) * 1e6 + (worst or 0.0),
                "workloads": record.evidence.get("workloads") or 0,
                "reason": record.reason.splitlines()[0] if record.reason else "",
            }
        )
    return rows


def worst_share(record: Record) -> float | None:
    """Of the check's limit, over all outputs."""
    found = [e["share"] for e in (record.evidence.get("errors") or {}).values() if number(e.get("share")) is not None]
    return max(found, default=None)


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
    threads = record.evidence.get("threads")
    return device(record) + (f", {units.count(threads, 'thread')}" if isinstance(threads, int) else "")


def _bench(record: Record, several_places: bool) -> Row:
    row, told = common(record), record.evidence
    median = float(record.median or 0)
    low, high = record.interval or (median, median)
    speedup, roofline, copy = (told.get(k) or {} for k in ("speedup", "roofline", "copy"))
    faster, interval = number(speedup.get("median")), speedup.get("interval")
    moved, done = number(told.get("bytes")) or 0, number(told.get("operations")) or 0
    copied = number(copy.get("median")) or 0
    case = [row["op"], shape(record.workload), row["dtype"], *([_place(record)] if several_places else [])]
    baseline = str(told.get("baseline") or "")
    return row | {
        "case": " · ".join(filter(None, case)),
        "place": _place(record),
        "seconds": median,
        "low": low,
        "high": high,
        "baseline": baseline,
        "speedup": faster,
        "speedup_low": interval[0] if interval else faster,
        "speedup_high": interval[1] if interval else faster,
        "bytes": moved,
        "rate": moved / median or None,
        "copy_rate": moved / copied if copied and moved else None,
        "copy_share": number(told.get("share_of_copy")),
        "copy_seconds": copied or None,
        "flops": done / median or None,
        "intensity": done / moved if done and moved else None,
        "limit_share": number(roofline.get("share")),
        "limit_seconds": number(roofline.get("seconds")),
        "bound": str(roofline.get("bound") or ""),
        "model": str(roofline.get("model") or ""),
        "converged": told.get("converged") is not False,
        "Notes": "; ".join(notes(told)) or units.NOTHING,
        "Time": units.between(median, (low, high), "s"),
        "Label": units.si(median, "s"),
        "Faster": units.times(faster),
        "Speedup": f"{units.times(faster)} over {baseline}" if faster else units.NOTHING,
        "Bandwidth": units.si(moved / median or None, "B/s"),
        "Compute": units.si(done / median or None, "FLOP/s"),
        "Share of the limit": units.share(number(roofline.get("share")), 1),
        "Share of a copy": units.share(number(told.get("share_of_copy")), 1),
        "Intensity": f"{done / moved:.3g} FLOP/B" if done and moved else units.NOTHING,
    }


def notes(told: dict[str, Any]) -> list[str]:
    """What a reader of a time must know: that it did not settle, that the chip was throttled, that clocks disagree."""
    clocks, second = told.get("clocks") or {}, told.get("second_clock") or {}
    return [
        *(["not converged: the interval is wider than asked for"] if told.get("converged") is False else []),
        *([f"throttled: {', '.join(map(str, clocks['throttle']))}"] if clocks.get("throttle") else []),
        *(
            [f"the second clock disagrees: {second.get('why') or 'unexplained'}"]
            if second.get("agrees") is False
            else []
        ),
        *([f"{told['launches']} kernels launched"] if (number(told.get("launches")) or 0) > 1 else []),
    ]


def samples(records: Iterable[Record]) -> list[Row]:
    """Every sample of every measured kernel, as lists: one row per kernel and clock, spread out only when drawn."""
    rows = []
    found = [r for r in records if r.verb == "bench" and (number(r.median) or 0) > 0]
    several = _several(found)
    for record in found:
        kinds = {"cold": record.samples, **{k: (record.evidence.get(k) or {}).get("samples") for k in ("hot", "call")}}
        base = {k: v for k, v in _bench(record, several).items() if k in SAMPLE_FIELDS}
        for kind, rounds in kinds.items():
            if not rounds:
                continue
            if not isinstance(rounds[0], list | tuple):
                rounds = [rounds]
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
