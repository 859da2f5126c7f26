"""How often does `compare` cry wolf, and how often does it see 2 %? Measured on this machine.

python tools/null_comparisons.py results/h200    compare.json is written there

Runs of the same kernels minutes apart are compared pairwise: every SLOWER or FASTER is a false alarm. Then the same
kernels on 2 % more elements, under the name of the workload they had: every cell that is not SLOWER is a miss."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from assay import bench, compare, library
from assay.host import runs_on_gpu
from assay.record import Record

GPU, CPU = ("triton", "cuda", "cupy", "torch"), ("torch", "njit")
OPS = ("gelu", "silu", "gelu_tanh", "axpy", "normalize_clip")
ELEMENTS = 1 << 26 if runs_on_gpu() else 1 << 22
MORE = ELEMENTS * 102 // 100 // 1024 * 1024
RUNS = 24


def once(elements: int) -> list[Record]:
    kept: list[Record] = []
    for op in OPS:
        ways = [
            k.name
            for k in library.kernels()
            if k.address.op == op and k.address.backend in (GPU if runs_on_gpu() else CPU)
        ]
        ways = [k for k in ways if ":" not in k]
        kept += bench(*ways, workload=f"n={elements},dtype=bf16", against=(), budget=1.0)
    return [r for r in kept if r.median]


def renamed(records: list[Record], elements: int) -> list[Record]:
    return [replace(r, workload=r.workload.replace(f"n={elements}", f"n={ELEMENTS}")) for r in records]


def main() -> None:
    folder = Path(sys.argv[1])
    plain, planted = [], []
    for number in range(RUNS):
        plain.append(once(ELEMENTS))
        if number % 3 == 0:
            planted.append(renamed(once(MORE), MORE))
        print(f"run {number + 1} of {RUNS}: {len(plain[-1])} cells", flush=True)
    nulls = [r for a, b in pairwise(plain) for r in compare(a, b)]
    slower = [r for number, b in enumerate(planted) for r in compare(plain[3 * number], b)]
    drift = max(abs(r.evidence["ratio"] - 1) for r in nulls)
    found = {
        "null": dict(Counter(r.evidence["verdict"] for r in nulls)),
        "planted_2_percent": dict(Counter(r.evidence["verdict"] for r in slower)),
        "largest_difference_of_medians": drift,
        "cells": sorted({f"{r.kernel} {r.workload}" for r in nulls}),
        "shortest_seconds": min(r.median or 0 for run in plain for r in run),
        "provenance": plain[0][0].provenance,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compare.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({k: found[k] for k in ("null", "planted_2_percent", "largest_difference_of_medians")}, indent=1))


if __name__ == "__main__":
    main()
