"""Times the packed kernels beside copies of the same bytes, and the packed linear layer beside the plain one.

    python tools/mx_speed.py results/h200/mx.json [--rounds 10] [--budget 1]

The plain layer is PyTorch's (on a GPU cuBLAS) with an unpacked matrix of the same shape. One document has both times,
taken at most minutes apart."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from assay.bench.planning import Options, plan
from assay.bench.verb import run
from assay.models.packed import plain
from assay.record import Record, document

MATRIX, ROWS = "n=16384,k=8192", "rows=16384,cols=8192"
WANTED = {
    f"m=1,{MATRIX},dtype=bf16": ("mx_linear/triton", "mx_linear/cuda"),
    f"m=8,{MATRIX},dtype=bf16": ("mx_linear/triton", "mx_linear/cuda"),
    **{
        f"m={m},n=1536,k=384,dtype={number}": ("mx_linear/triton", "mx_linear/cuda")
        for number in ("fp32", "bf16", "fp16")
        for m in (128, 16384)
    },
    f"{ROWS},dtype=bf16": ("mx_dequantize/triton", "mx_dequantize/cuda", "mx_quantize/triton", "mx_quantize/cuda"),
    f"{ROWS},dtype=fp32": ("mx_dequantize/triton", "mx_dequantize/cuda", "mx_quantize/triton", "mx_quantize/cuda"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=1.0)
    asked = parser.parse_args()
    records: list[Record] = []
    for workload, kernels in WANTED.items():
        options = Options(workload=workload, rounds=asked.rounds, budget=asked.budget, against=(), second_clock=False)
        for what in (kernels, (plain.FILE,) if workload.startswith("m=") else ()):
            for record in run(plan(what, options), options) if what else ():
                records.append(record)
                took = f"{record.median * 1e6:8.2f} µs" if record.median else record.reason
                print(f"{record.kernel:22} {record.workload:44} {took}", flush=True)
        # Written after each workload, so that an interruption keeps what was done.
        asked.out.write_text(json.dumps(document(records, verb="bench"), indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
