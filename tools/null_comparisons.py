"""How often does `compare` cry wolf, and how often does it see 2 %? Measured on this machine.

python tools/null_comparisons.py results/h200    compare.json is written there

The same kernels are timed in several sessions, each with processes of its own. Runs of different sessions are
compared: every SLOWER or FASTER is a false alarm. Then with runs on 2 % more elements, under the name of the workload
they had: every cell that is not SLOWER is a miss."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

from assay import compare, library
from assay.bench.verb import Options, Plan, plan, run
from assay.host import runs_on_gpu
from assay.record import Record, document

GPU, CPU = ("triton", "cuda", "cupy", "torch"), ("torch", "njit")
OPS = ("gelu", "silu", "gelu_tanh", "axpy")
ELEMENTS = 1 << 25 if runs_on_gpu() else 1 << 22
MORE = ELEMENTS * 102 // 100 // 1024 * 1024
SESSIONS, RUNS, PLANTED = 3, 4, 1
"""Runs in a session, and how many of 2 % more."""


def plans(elements: int, options: Options) -> list[Plan]:
    mine = GPU if runs_on_gpu() else CPU
    fits = [k.address for k in library.kernels() if k.address.op in OPS and k.address.backend in mine]
    ways = [str(a) for a in fits if not a.variant]
    return plan(ways, replace(options, workload=f"n={elements},dtype=bf16"))


def session() -> tuple[list[list[Record]], list[list[Record]]]:
    """Plain runs and planted ones, by processes that live as long as it."""
    options = Options(against=(), budget=1.0, second_clock=False)
    plain, more = plans(ELEMENTS, options), plans(MORE, options)
    size = sum(len(p.kernels) for p in plain)
    order = [plain] * (RUNS - PLANTED) + [more, plain] * PLANTED
    found = list(run([p for part in order for p in part], options))
    bunches = [found[i * size : (i + 1) * size] for i in range(len(order))]
    return (
        [b for b, part in zip(bunches, order, strict=True) if part is plain],
        [[_renamed(r) for r in b] for b, part in zip(bunches, order, strict=True) if part is more],
    )


def _renamed(record: Record) -> Record:
    return replace(record, workload=record.workload.replace(f"n={MORE}", f"n={ELEMENTS}"))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    sessions: list[tuple[list[list[Record]], list[list[Record]]]] = []
    for number in range(SESSIONS):
        began = time.time()
        sessions.append(session())
        print(f"session {number + 1} of {SESSIONS}: {time.time() - began:.0f} s", flush=True)
        if number:
            write(folder, sessions)


def write(folder: Path, sessions: list[tuple[list[list[Record]], list[list[Record]]]]) -> None:
    """Every run of a session against every run of every later one."""
    nulls, slower = [], []
    for (before, _), (after, planted) in combinations(sessions, 2):
        nulls += [r for a, b in product(before, after) for r in compare(a, b)]
        slower += [r for a, b in product(before, planted) for r in compare(a, b)]
    every = [r for plain, more in sessions for runs in (*plain, *more) for r in runs]
    found = {
        "null": dict(Counter(r.evidence["verdict"] for r in nulls)),
        "planted_2_percent": dict(Counter(r.evidence["verdict"] for r in slower)),
        "largest_difference_of_medians": max(abs(r.evidence["ratio"] - 1) for r in nulls),
        "cells": sorted({f"{r.kernel} {r.workload}" for r in nulls}),
        "sessions": len(sessions),
        "runs": sum(len(plain) for plain, _ in sessions),
        "planted_runs": sum(len(more) for _, more in sessions),
        "shortest_seconds": min(r.median for r in every if r.median),
        "provenance": every[0].provenance,
    }
    (folder / "compare.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "null-runs.json").write_text(json.dumps(document(every, verb="bench"), default=str) + "\n")
    print(json.dumps({k: found[k] for k in ("null", "planted_2_percent", "largest_difference_of_medians")}, indent=1))


if __name__ == "__main__":
    main()
