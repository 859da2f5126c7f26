"""The tables of `model compile`, `attention` and `train`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.record import Record
from assay.report.rows import parts
from assay.units import share, si, times
from model_markdown import spread, table


def compiled(records: Sequence[Record]) -> list[str]:
    rows = []
    for record in (r for r in records if "break_even" in r.evidence):
        e = record.evidence
        calls = e["break_even"]["calls"]
        rows.append(
            [
                record.kernel,
                "+".join(map(str, e["batches"])),
                e["dtype"],
                e["mode"],
                e["state"],
                si(e["compile_seconds"], "s", 3),
                si(e["steady"]["eager"]["median"], "s"),
                si(record.median, "s"),
                spread(record),
                times(e["speedup"]["median"]),
                f"{calls:,} calls" if calls else e["break_even"]["verdict"],
                str(e["counts"]["graphs"]),
                str(e["counts"]["breaks"]),
            ]
        )
    heads = "model|:batch|dtype|mode|state|:compile|:eager|:compiled|:95 %|:gain|:pays after|:graphs|:breaks"
    return table(heads, rows)


def attended(records: Sequence[Record]) -> list[str]:
    rows = []
    for record in (r for r in records if r.median):
        e, sizes = record.evidence, parts(record.workload)
        faster = times(e["speedup"]["median"]) if "speedup" in e else ""
        rows.append(
            [
                sizes["dtype"],
                "causal" if sizes["causal"] == "1" else "",
                sizes["seq"],
                e["arm"] + ("¹" if e.get("recognised") else ""),
                si(record.median, "s"),
                spread(record),
                faster,
                si(e.get("peak_bytes"), "B", 3),
                si(e["tflops"] * 1e12, "FLOP/s", 3),
                share(e["errors"]["share"]),
            ]
        )
    note = "¹ the compiler recognised the formula and put PyTorch's fused operator in its place.\n"
    seen = any(r.evidence.get("recognised") for r in records)
    return [*table("dtype|mask|:seq|arm|:time|:95 %|:gain|:memory|:rate|:error", rows), *([note] if seen else [])]


def trained(records: Sequence[Record]) -> list[str]:
    """A run that was held against PyTorch's seeds says how far it leaves their envelope. So does PyTorch's own second
    run of the first seed, and each of the seeds against the others: by these it is to be judged."""
    rows = []
    seen: set[str] = set()
    plain = {r.workload: r for r in reversed(records) if "test" in r.evidence and not r.evidence["config"]["swap"]}
    envelope = next((r.evidence["envelope"] for r in records if "envelope" in r.evidence), None)
    for record in (r for r in records if "test" in r.evidence):
        e = record.evidence
        swap = ", ".join(f"{k}={v}" for k, v in e["config"]["swap"].items()) or "torch"
        spans = not e["config"]["swap"] and record.workload not in seen  # one of those that span the envelope
        again = not e["config"]["swap"] and record.workload in seen
        seen.add(record.workload)
        took = si(e["seconds_per_epoch"], "s", 3) if "seconds_per_epoch" in e else ""
        rows.append(
            [
                record.kernel,
                re.sub(r"\|", "", swap) + (", again" if again else ""),
                str(e["config"]["seed"]),
                e["data"]["name"],
                str(len(e["epochs"])),
                share(e["test"]["value"], 2),
                ""
                if envelope is None
                else f"{_outside(e['curve'], _band(plain, record))}*"
                if spans
                else _outside(e["curve"], envelope),
                took,
                si(e["peak_memory"]["bytes"], "B", 3),
            ]
        )
    heads = "model|kernels|:seed|data|:epochs|:test accuracy|:leaves the band by|:one epoch|:memory"
    if envelope is None:
        return table(heads, rows)
    text = (
        "\\* the band of the other seeds. PyTorch's two runs of seed 0 lie up to "
        f"{envelope['same_seed_apart']:.4f} apart: a run with kernels passes if it leaves the band by no more "
        "than that.\n"
    )
    return [*table(heads, rows), text]


def _band(plain: dict[str, Record], but: Record) -> dict:
    """What the seeds span without one of them."""
    others = [[loss for _, loss in r.evidence["curve"]] for r in plain.values() if r.workload != but.workload]
    return {name: [of(at) for at in zip(*others, strict=True)] for name, of in (("low", min), ("high", max))}


def _outside(curve: Sequence[Sequence[float]], envelope: dict) -> str:
    """At most, in units of loss, and at how many of its points."""
    low, high = envelope["low"], envelope["high"]
    off = [max(a - loss, loss - b, 0.0) for a, (_, loss), b in zip(low, curve, high, strict=True)]
    return f"{max(off):.4f} ({sum(o > 0 for o in off)} of {len(off)} points)"
