"""Compares bench's cold times on a GPU with Nsight Compute's for the same kernels, and with its own when everything is
measured again minutes later.

python tools/against_ncu.py results/h200    write bench.json and ncu.json there; an existing bench.json is kept
"""

from __future__ import annotations

import csv
import io
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay import host
from assay.bench.planning import Options, plan
from assay.bench.verb import run
from assay.record import Record, document, read
from assay.workload import Workload

KERNELS = {
    "gelu": ("torch", "triton", "cuda", "cupy"),
    "silu": ("triton", "cuda", "numba"),
    "layernorm": ("triton", "cuda"),
    "softmax": ("cuda",),
}
ELEMENTS = (1 << 18, 1 << 21, 1 << 24, 1 << 27, 1 << 30)
"""Elements in bf16, read and written once: 1 MiB to 4 GiB."""
BUDGET = 2.0
LONG = 20e-6
"""Seconds above which a kernel is measured again."""
CALLS = 3
SEPARATOR = "spin_kernel"
"""ncu's name for the kernel that runs before every call."""


def cells() -> list[tuple[str, str]]:
    """Return (kernel, workload) in the order in which both tools measure them."""
    rows = []
    for op, ways in KERNELS.items():
        for elements in ELEMENTS:
            if op in ("gelu", "silu"):
                sizes = f"n={elements}"
            else:
                sizes = f"rows={elements // 1024},cols=1024"
            rows += [(f"{op}/{way}", f"{sizes},dtype=bf16") for way in ways]
    return rows


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "bench.json"
    if kept.exists():
        records = read(kept)
    else:
        records = once(cells(), second_clock=True)
        kept.write_text(json.dumps(document(records, verb="bench"), indent=1, default=str) + "\n")
    empty, measured = ncu()
    print(f"ncu shows {empty * 1e6:.2f} µs for an empty kernel")
    rows = []
    for record in records:
        seconds = measured.get((record.kernel, _asked(record)))
        if record.median is None or not seconds:
            print(f"left out: {record.kernel} {record.workload}: {record.status} {record.reason}")
            continue
        off = record.median - seconds
        evidence = record.evidence
        rows.append(
            {
                "kernel": record.kernel,
                "workload": record.workload,
                "bytes": evidence["bytes"],
                "bench": record.median,
                "interval": record.interval,
                "ncu": seconds,
                "off": off,
                "agrees": abs(off) <= max(0.03 * seconds, 1e-6),
                "second_clock": evidence.get("second_clock", {}),
                "write_back": evidence["write_back"],
                "start": evidence.get("start"),
                "method": evidence["method"],
                "provenance": record.provenance,
            }
        )
        rows[-1]["why"] = explanation(rows[-1], empty)
    write(folder, empty, rows)
    long = [(r.kernel, _asked(r)) for r in records if r.median and r.median > LONG]
    again = {(r.kernel, r.workload): r.median for r in once(long, second_clock=False)}
    for row in rows:
        row["again"] = again.get((row["kernel"], row["workload"]))
    write(folder, empty, rows)
    repeated = [r for r in rows if r["again"]]
    print(f"{len(repeated)} cells over {LONG * 1e6:.0f} µs measured again")
    for row in (r for r in repeated if abs(r["again"] / r["bench"] - 1) > 0.01):
        times = f"{row['bench'] * 1e6:.2f} µs, then {row['again'] * 1e6:.2f} µs"
        print(f"  again: {row['kernel']} {row['workload']}: {times}")


def write(folder: Path, empty: float, rows: list[dict[str, Any]]) -> None:
    (folder / "ncu.json").write_text(json.dumps({"empty": empty, "cells": rows}, indent=1) + "\n")
    print(f"{sum(r['agrees'] for r in rows)} of {len(rows)} cells agree within 3 % or 1 µs")
    for row in (r for r in rows if not r["agrees"]):
        times = f"bench {row['bench'] * 1e6:.2f} µs, ncu {row['ncu'] * 1e6:.2f} µs"
        print(f"  {row['kernel']} {row['workload']}: {times}; {row['why']}")


def explanation(row: dict[str, Any], empty: float) -> str:
    """Return the reason of a disagreement, derived from the record. `empty`: ncu's seconds for an empty kernel."""
    if row["agrees"]:
        return ""
    if row["second_clock"].get("why"):
        return str(row["second_clock"]["why"])
    if 0 < row["off"] <= row["write_back"]["seconds"]:
        return f"write-back: {row['write_back']['bytes'] / 1e6:.1f} MB that earlier calls left in the L2"
    if row["start"] and 0 < -row["off"] <= empty:
        node = f"a node of a graph takes {row['start'] * 1e6:.2f} µs"
        return f"starting: ncu shows {empty * 1e6:.2f} µs for an empty kernel, {node}"
    return "unexplained"


def once(wanted: list[tuple[str, str]], second_clock: bool) -> list[Record]:
    """Time these cells in one run of bench."""
    options = Options(against=(), budget=BUDGET, seconds=300, second_clock=second_clock)
    plans = []
    for op, workload in dict.fromkeys((k.partition("/")[0], w) for k, w in wanted):
        kernels = [k for k, w in wanted if k.startswith(op + "/") and w == workload]
        plans += plan(kernels, replace(options, workload=workload))
    records = []
    for record in run(plans, options):
        records.append(record)
        print(f"{record.kernel} {record.workload}: {(record.median or 0) * 1e6:.2f} µs", flush=True)
    return records


def _asked(record: Record) -> str:
    """Return the workload as `cells` writes it, without attributes at their defaults."""
    axes = dict(part.split("=") for part in record.workload.split(","))
    return next((w for k, w in cells() if k == record.kernel and _within(w, axes)), "")


def _within(workload: str, parts: dict[str, str]) -> bool:
    return all(parts.get(name) == value for name, value in (p.split("=") for p in workload.split(",")))


def ncu() -> tuple[float, dict[tuple[str, str], float]]:
    """Return ncu's device seconds of an empty kernel and of each cell's call, with caches flushed before every kernel
    and clocks left alone."""
    command = [
        str(host.tool("ncu")),
        "--csv",
        "--profile-from-start",
        "off",
        "--cache-control",
        "all",
        "--clock-control",
        "none",
        "--metrics",
        "gpu__time_duration.sum",
        sys.executable,
        __file__,
        "--target",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit(f"ncu printed no table:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    runs: list[list[float]] = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if SEPARATOR in row["Kernel Name"]:
            runs.append([])
            continue
        scale = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3}
        runs[-1].append(float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]])
    calls = [sum(part) for part in runs]  # a separator precedes every call, so kernels of a call are summed
    empty, *rest = (statistics.median(calls[i : i + CALLS]) for i in range(0, len(calls), CALLS))
    if len(rest) != len(cells()):
        sys.exit(f"ncu saw {len(rest)} of {len(cells())} cells:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return empty, dict(zip(cells(), rest, strict=True))


def target() -> None:
    """Run an empty kernel and then every cell under ncu, each CALLS times."""
    import torch

    from assay.catalog.select import select
    from assay.dtype import dtype
    from assay.machine.lab import Lab
    from assay.machine.probes.launching import HOLDER
    from assay.worker import load

    nothing = Lab().kernel(HOLDER, "nothing")
    watched(lambda: nothing(1, 32))
    for name, text in cells():
        ((kernel, op),) = select([name])
        workload = Workload.of(op, text)
        if not _prepared.get(kernel.address.backend):
            load.prepare(kernel, "native")
            _prepared[kernel.address.backend] = True
        function = load.function(kernel, op, workload.dtype)
        tensors = {
            n: torch.randn(workload.shape(t), device="cuda").to(workload.dtype_of(t).torch)
            for n, t in workload.present.items()
        }
        outputs = {
            n: torch.empty(workload.shape(t), dtype=workload.dtype_of(t).torch, device="cuda")
            for n, t in op.outputs.items()
            if kernel.file is None or n in kernel.parameters
        }
        outputs |= {
            n: torch.empty(tuple(workload.length(s) for s in sizes), dtype=dtype(number).torch, device="cuda")
            for n, (number, *sizes) in kernel.scratch.items()
        }
        keywords = load.keywords(kernel, op, dict(workload.attributes) | outputs)
        args = tuple(tensors.get(n) for n in op.inputs)
        watched(lambda f=function, a=args, k=keywords: f(*a, **k))
        del tensors, outputs, args, keywords
        torch.cuda.empty_cache()


def watched(call: Callable[[], Any]) -> None:
    """Call once unprofiled, then CALLS times profiled by ncu, with a separator before each call."""
    import torch

    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(CALLS):
        torch.cuda._sleep(100)
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


_prepared: dict[str, bool] = {}

if __name__ == "__main__":
    target() if "--target" in sys.argv else main()
