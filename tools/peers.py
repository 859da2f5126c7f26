"""Times peers without Assay and through it, and fails if Assay makes one slower.

    python tools/peers.py results/h200/peers.json [--op layernorm] [--shape 4096x1024] [--dtype bf16]

Without Assay: the peer's own function on plain tensors, in a CUDA graph over more buffers than the cache holds. Both
times are taken in one run, one after the other. A GPU is required."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from assay import provenance
from assay.bench.evidence import BenchEvidence
from assay.bench.planning import Options, plan
from assay.bench.verb import run
from assay.record import Status

SHAPES = ("4096x1024", "16384x1024", "32768x768", "8192x4096", "16384x8192", "2048x32768", "64x262144")
OPS = ("gelu", "silu", "softmax", "layernorm", "ln_gelu")
ALLOWED = 1.03
"""Largest allowed ratio of a peer's time through Assay to its time alone."""
MODES = {"inductor": "default", "inductor:max_autotune": "max-autotune-no-cudagraphs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--op", default=",".join(OPS))
    parser.add_argument("--shape", default=",".join(SHAPES))
    parser.add_argument("--dtype", default="bf16")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for op in asked.op.split(","):
        for shape in asked.shape.split(","):
            for dtype in asked.dtype.split(","):
                rows += compared(op, shape, dtype)
                asked.out.write_text(
                    json.dumps({"provenance": provenance.provenance(0), "rows": rows}, indent=1) + "\n"
                )
    slower = [r for r in rows if r["ratio"] > ALLOWED]
    for r in slower:
        print(f"slower through Assay: {r['kernel']} {r['shape']} {r['dtype']}: {r['ratio']:.3f}")
    sys.exit(bool(slower))


def compared(op: str, shape: str, dtype: str) -> list[dict[str, Any]]:
    height, width = map(int, shape.split("x"))
    elementwise = op in ("gelu", "silu")
    workload = f"n={height * width}" if elementwise else f"rows={height},cols={width}"
    names = [f"{op}/{language}" for language in ("torch", *MODES)]
    options = Options(workload=f"{workload},dtype={dtype}", against=(f"{op}/torch",), second_clock=False, budget=2.0)
    through = {r.kernel: r for r in run(plan(names, options), options)}
    found = []
    for name in names:
        record = through[name]
        if record.median is None or record.status not in (Status.PASS, Status.INCONCLUSIVE):
            print(f"{name} {shape} {dtype}: {record.reason}")
            continue
        number = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]
        bare = alone(op, name.partition("/")[2], height, width, number)
        share = BenchEvidence.of(record).share_of_copy
        found.append(
            {
                "kernel": name,
                "shape": shape,
                "dtype": dtype,
                "alone_s": bare,
                "assay_s": record.median,
                "ratio": record.median / bare,
                "share_of_copy": share,
            }
        )
        print(
            f"{name:32} {shape:12} {dtype}  alone {bare * 1e6:9.2f} µs  Assay {record.median * 1e6:9.2f} µs  "
            f"ratio {record.median / bare:.3f}  {share or 0:.0%} of copy",
            flush=True,
        )
    return found


def plain(op: str, width: int) -> Callable[..., torch.Tensor]:
    """Return the function as its users write it."""
    return {
        "gelu": lambda x, w, b: F.gelu(x),
        "silu": lambda x, w, b: F.silu(x),
        "softmax": lambda x, w, b: torch.softmax(x, -1),
        "layernorm": lambda x, w, b: F.layer_norm(x, (width,), w, b),
        "ln_gelu": lambda x, w, b: F.gelu(F.layer_norm(x, (width,), w, b)),
    }[op]


def alone(op: str, language: str, height: int, width: int, dtype: torch.dtype) -> float:
    """Return the median seconds of a cold call."""
    torch._dynamo.reset()
    function = plain(op, width)
    if language in MODES:
        function = torch.compile(function, dynamic=False, mode=MODES[language])
    size = height * width * torch.finfo(dtype).bits // 8
    # Each call has its own inputs and outputs: together more than four times the cache, and 400 µs at 4 TB/s.
    calls = max(4 * torch.cuda.get_device_properties(0).L2_cache_size, 1_600_000_000) // (2 * size) + 2
    xs = [torch.randn(height, width, device="cuda", dtype=dtype) for _ in range(calls)]
    weight, bias = (torch.randn(width, device="cuda", dtype=dtype) for _ in range(2))
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for x in xs[:3]:
            function(x, weight, bias)
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            kept = [function(x, weight, bias) for x in xs]
        times = []
        for _ in range(30):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(400_000)
            start.record(side)
            graph.replay()
            end.record(side)
            side.synchronize()
            times.append(start.elapsed_time(end) * 1e-3 / calls)
    del graph, kept, xs
    torch.cuda.empty_cache()
    return statistics.median(times)


if __name__ == "__main__":
    main()
