"""Tests bench's guards on a GPU: cheats of the corpus are caught, and honest kernels raise no alarm. Also shows how far
each kernel lies above its floor and below the copy.

    python tools/bench_on_gpu.py OUT.json [cheats] [honest] [yardsticks]"""

import json
import sys
from pathlib import Path

import assay
from assay.selftest import entries, selftest

SETTINGS = {"rounds": 5, "budget": 0.5, "second_clock": False, "against": ("torch",)}
SIZES = {
    "silu": {"n": [4096, 1 << 20, 1 << 24, 1 << 28]},
    "gelu": {"n": [1 << 20, 1 << 24, 1 << 28]},
    "softmax": {"rows": [64, 4096, 16384], "cols": [1024, 8192]},
    "layernorm": {"rows": [64, 4096, 16384], "cols": [1024, 8192]},
    "transpose": {},
    "sum": {},
}


def cheats():
    for record in selftest([e.name for e in entries() if e.verb == "bench"]):
        evidence = record.evidence
        seen = f"by {evidence['caught_by']}, twin {evidence['twin']}: {record.reason[:160]}"
        print(f"{record.kernel:<20} {record.status:<12} {seen}", flush=True)
        yield record


def honest():
    for op, axes in SIZES.items():
        for record in assay.bench(op, axes=axes, dtypes=("bf16", "fp32") if axes else (), **SETTINGS):
            if record.status == "skipped":
                continue
            evidence = record.evidence
            floor, copy, clock = (evidence.get(k) or {} for k in ("floor", "copy", "parent_clock"))
            above = record.median / floor["seconds"] if record.median and floor else float("nan")
            waited = clock["waited"] / clock["claimed"] if clock else float("nan")
            print(
                f"{record.kernel:<24} {record.workload:<34} {record.status:<6} {above:7.3f} × floor "
                f"by {floor.get('by')} at {floor.get('gbps', 0):.0f} GB/s, "
                f"{evidence.get('share_of_copy', 0):.1%} of copy ({copy.get('form')}), "
                f"parent {waited:.2f}×, {evidence.get('method', '')[:30]}"
                + ("" if record.status == "pass" else f"  !! {record.reason[:200]}")
            )
            yield record


def yardsticks():
    """Time every form of every yardstick, to see which are worth compiling."""
    import torch

    from assay.worker import yardstick
    from assay.worker.buffers import beyond_cache
    from assay.worker.stopwatch import GraphReplay

    watch = GraphReplay()
    with torch.cuda.stream(torch.cuda.Stream()):
        for size in (1 << 20, 1 << 24, 1 << 28, 1 << 30):
            memory = torch.empty(max(2 * size, beyond_cache("cuda") + size), dtype=torch.uint8, device="cuda").random_()
            for kind in ("copy", "read", "write"):
                for name, form in yardstick._forms(kind, "cuda").items():
                    call = form(memory, size)
                    call(0)
                    best = min(s.seconds for s in yardstick._samples(call, watch, 5, 0.05))
                    print(f"{kind:<6} {size:>11} B  {size / best / 1e9:7.0f} GB/s  {name}")
    yield from ()


if __name__ == "__main__":
    wanted = sys.argv[2:] or ["cheats", "honest", "yardsticks"]
    kept = [record.to_dict() for name in wanted for record in globals()[name]()]
    Path(sys.argv[1]).write_text(json.dumps({"records": kept}, indent=1))
