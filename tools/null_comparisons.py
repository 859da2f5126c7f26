"""Measures how often `compare` raises a false alarm on this machine, and how often it detects a slowdown of 2 %.

python tools/null_comparisons.py results/h200       time SESSIONS more sessions and add them to null-runs.json there
python tools/null_comparisons.py results/h200 0     only judge the existing sessions again; no device is needed

The same kernels are timed in several sessions, each with its own processes. Every run of a session is compared with
every run of every later one: each SLOWER or FASTER is a false alarm. Then it is compared with runs on 2 % more
elements, under the original workload's name: each cell that is not SLOWER is a miss. compare.json has the counts."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

from assay import compare
from assay.bench.planning import BenchPlan, Options, plan
from assay.bench.verb import run
from assay.catalog import library
from assay.host import runs_on_gpu
from assay.record import Record

GPU, CPU = ("triton", "cuda", "cupy", "torch"), ("torch", "njit")
OPS = ("gelu", "silu", "gelu_tanh", "axpy")
ELEMENTS = 1 << 25 if runs_on_gpu() else 1 << 22
MORE = ELEMENTS * 102 // 100 // 1024 * 1024
SESSIONS, RUNS, PLANTED = 3, 4, 1
"""Sessions to add, runs in a session, and how many of these have 2 % more elements."""


def plans(elements: int, options: Options) -> list[BenchPlan]:
    cases = GPU if runs_on_gpu() else CPU
    fits = [k.address for k in library.kernels() if k.address.op in OPS and k.address.backend in cases]
    ways = [str(a) for a in fits if not a.variant]
    return plan(ways, replace(options, workload=f"n={elements},dtype=bf16"))


def session() -> dict[str, Any]:
    """Time one session of plain runs and planted ones, in processes that live as long as the session."""
    options = Options(against=(), budget=1.0, second_clock=False)
    plain, more = plans(ELEMENTS, options), plans(MORE, options)
    size = sum(len(p.kernels) for p in plain)
    order = [plain] * (RUNS - PLANTED) + [more, plain] * PLANTED
    records = [_slim(r) for r in run([p for part in order for p in part], options)]
    bunches = [records[i * size : (i + 1) * size] for i in range(len(order))]
    kinds = {"plain": plain, "planted": more}
    return {k: [b for b, part in zip(bunches, order, strict=True) if part is group] for k, group in kinds.items()}


def _slim(record: Record) -> dict[str, Any]:
    """Return the fields that `compare` needs, under the name of the plain workload."""
    fields = record.to_dict()
    kept = ("verb", "kernel", "workload", "status", "reason", "run", "source", "provenance", "median", "samples")
    evidence = {k: record.evidence[k] for k in ("device", "rounds", "clocks") if k in record.evidence}
    workload = record.workload.replace(f"n={MORE}", f"n={ELEMENTS}")
    return {k: fields[k] for k in kept} | {"workload": workload, "evidence": evidence}


def judged(sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare every run of a session with every run of every later one, and return the counts."""
    runs = [{k: [[Record(**r) for r in one] for one in s[k]] for k in ("plain", "planted")} for s in sessions]
    comparisons = {
        kind: [
            r
            for before, after in combinations(runs, 2)
            for a, b in product(before["plain"], after[kind])
            for r in compare(a, b)
        ]
        for kind in ("plain", "planted")
    }
    every = [r for s in runs for kind in s.values() for one in kind for r in one]
    return {
        "null": dict(Counter(r.evidence["verdict"] for r in comparisons["plain"])),
        "planted_2_percent": dict(Counter(r.evidence["verdict"] for r in comparisons["planted"])),
        "largest_difference_of_medians": max(abs(_medians(r) - 1) for r in comparisons["plain"]),
        "cells": sorted({f"{r.kernel} {r.workload}" for r in comparisons["plain"]}),
        "sessions": len(sessions),
        "runs": sum(len(s["plain"]) for s in sessions),
        "planted_runs": sum(len(s["planted"]) for s in sessions),
        "shortest_seconds": min(r.median for r in every if r.median),
        "provenance": every[0].provenance,
    }


def _medians(change: Record) -> float:
    return float(change.evidence["new"]["median"] / change.evidence["old"]["median"])


def main() -> None:
    folder = Path(sys.argv[1])
    more = int(sys.argv[2]) if len(sys.argv) > 2 else SESSIONS
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "null-runs.json"
    sessions: list[dict[str, Any]] = json.loads(file.read_text())["sessions"] if file.exists() else []
    for number in range(more):
        began = time.time()
        sessions.append(session())
        file.write_text(json.dumps({"sessions": sessions}) + "\n")
        print(f"session {number + 1} of {more}: {time.time() - began:.0f} s", flush=True)
    comparisons = judged(sessions)
    (folder / "compare.json").write_text(json.dumps(comparisons, indent=1) + "\n")
    print(
        json.dumps(
            {k: comparisons[k] for k in ("null", "planted_2_percent", "largest_difference_of_medians")}, indent=1
        )
    )


if __name__ == "__main__":
    main()
