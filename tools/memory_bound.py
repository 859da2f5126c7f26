"""Times the memory-bound kernels on a GPU, for the tables of docs/results.md.

    python tools/memory_bound.py ours results/h200/memory_bound.json [--op ln_gelu,sum] [--seconds 300]
    python tools/memory_bound.py peers results/h200/memory_bound_peers.json

`ours`: CUDA and Triton side by side on many shapes. `peers`: the same beside plain PyTorch and torch.compile on few
shapes, since compiling for each takes seconds. Records are written after every op; --op replaces only those of these
ops. All workloads of an op are one run of bench with `--quick`, so that its processes start only once."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.bench.planning import BenchPlan, Options, plan
from assay.bench.verb import run
from assay.kernel import address
from assay.record import document

SHAPES = ("4096x1024", "16384x1024", "32768x768", "8192x4096", "16384x8192", "2048x32768", "64x262144")
LONG = ("8192x4096", "2048x32768")
BACKWARD = ("8192x4096", "16384x8192")
LENGTHS = tuple(n << 20 for n in (4, 32, 128))

Shapes = dict[str, tuple[Any, ...]]
"""Rows and columns, or numbers of elements, by dtype."""
ROWS: Shapes = {"bf16": SHAPES, "fp16": LONG, "fp32": LONG}
MAPS: Shapes = {"bf16": LENGTHS, "fp32": LENGTHS[1:2]}
BACK: Shapes = {"bf16": BACKWARD, "fp32": BACKWARD[:1]}
OURS: dict[str, Shapes] = {
    "ln_gelu": ROWS,
    "layernorm": ROWS,
    "softmax": ROWS,
    "rmsnorm": ROWS,
    "gelu": MAPS,
    "silu": MAPS,
    "relu": MAPS,
    "gelu_backward": {"bf16": LENGTHS[1:]},
    "layernorm_backward": BACK,
    "ln_gelu_backward": BACK,
    "transpose": {"bf16": ("8192x8192", "16384x4096"), "fp32": ("8192x8192",)},
    "sum": {"bf16": (1 << 24, 1 << 28), "fp32": (1 << 24,)},
}
FEW: Shapes = {"bf16": ("8192x4096", "4096x1024", "2048x32768")}
PEERS: dict[str, Shapes] = {
    "ln_gelu": FEW,
    "layernorm": FEW,
    "softmax": FEW,
    "rmsnorm": FEW,
    "gelu": {"bf16": LENGTHS[1:2]},
    "silu": {"bf16": LENGTHS[1:2]},
    "gelu_backward": {"bf16": LENGTHS[1:2]},
    "layernorm_backward": {"bf16": BACKWARD[:1]},
    "ln_gelu_backward": {"bf16": BACKWARD[:1]},
    "transpose": {"bf16": ("8192x8192",)},
    "sum": {"bf16": (1 << 28,)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("ours", "peers"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--op", default="")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    table = OURS if asked.what == "ours" else PEERS
    names = asked.op.split(",") if asked.op else list(table)
    records = json.loads(asked.out.read_text())["records"] if asked.out.exists() else []
    ends = time.monotonic() + asked.seconds
    for op in names:
        if time.monotonic() > ends:
            print(f"{op}: no time left")
            continue
        taken = [json.loads(json.dumps(r.to_dict(), default=str)) for r in timed(op, table[op], asked.what == "peers")]
        records = [r for r in records if address(r["kernel"]).op != op] + taken
        asked.out.write_text(json.dumps(document([], verb="bench") | {"records": records}, indent=1) + "\n")


def timed(op: str, shapes: Shapes, peers: bool) -> list[Any]:
    """Return the records of one run of bench, and print them as they come."""
    options = Options(against=(f"{op}/torch",) if peers else ()).quicker()
    kernels = [f"{op}/{language}" for language in ("cuda", "triton", *(("inductor",) if peers else ()))]
    plans: list[BenchPlan] = []
    for dtype, sizes in shapes.items():
        for size in sizes:
            plans += plan(kernels, replace(options, workload=f"{_axes(size)},dtype={dtype}"))
    records = []
    for record in run(plans, options):
        records.append(record)
        share = record.evidence.get("share_of_copy")
        figure = f"{share:.0%} of a copy" if share else f"{record.status}: {record.reason}"
        print(f"{record.kernel:24} {record.workload:60} {figure}", flush=True)
    return records


def _axes(size: str | int) -> str:
    if isinstance(size, int):
        return f"n={size}"
    rows, cols = size.split("x")
    return f"rows={rows},cols={cols}"


if __name__ == "__main__":
    main()
