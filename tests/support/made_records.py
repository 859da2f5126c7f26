"""Records as bench, check, compare and machine would give them, for tests of what shows them."""

import random
from dataclasses import replace
from pathlib import Path

from assay.record import Record, Status, read
from assay.report.charts import FIGURES

ROOT = Path(__file__).parents[2]
H200 = ROOT / "results" / "h200"


_OF_MODELS = (
    "models",
    "training",
    "compile",
    "attention",
    "quantize",
    "prune",
    "formats",
    "pareto",
    "latency",
    "search",
    "sensitivity",
)
OF_KERNELS = [f for f in FIGURES if f.name not in _OF_MODELS]
"""The others are drawn from records of models, in their own tests."""
GPU = "Synthetic GPU"
MADE = {
    "assay": "0.0",
    "commit": "0000000+",
    "python": "3.12.3",
    "system": "Linux x86_64",
    "cpu": "Synthetic CPU",
    "cores": 16,
    "gpu": GPU,
    "driver": "000.00",
    "packages": {"torch": "0.0", "triton": "0.0"},
    "time": "2000-01-01T00:00:00Z",
    "seed": 0,
}
OPS = {"gelu": (1, 12), "layernorm": (2, 8), "softmax": (2, 6), "silu": (1, 6), "conv2d": (2, 220)}
"""Op: its axes, its operations per element."""
WAYS = {"torch": 1.0, "inductor": 0.72, "triton": 0.61, "cuda": 0.58, "cuda:naive": 1.4, "cupy": 0.66, "numba": 0.93}
"""Kernel: its time as a share of the baseline's."""
FEW = ("torch", "triton", "cuda", "cuda:naive", "numba")
STREAM, LAUNCH = 4.2e12, 2.2e-6


def synthetic_benches(seed=0, ops=OPS, ways=WAYS, sizes=(10, 12, 14, 16), dtypes=("bf16", "fp32"), rounds=6):
    dice = random.Random(seed)
    for op, (axes, work) in ops.items():
        for dtype in dtypes:
            for size in [(down, across) for down in sizes for across in (sizes[:3] if axes == 2 else (12,))]:
                n = 2 ** sum(size)
                shape = f"rows={2 ** size[0]},cols={2 ** size[1]}" if axes == 2 else f"n={n}"
                moved = 2 * n * (2 if dtype == "bf16" else 4)
                copy = LAUNCH + moved / STREAM
                baseline = None
                for way, share in ways.items():
                    true = LAUNCH + copy * 1.85 * share * dice.uniform(0.95, 1.08)
                    samples = [
                        [true * off * dice.lognormvariate(0, 0.004) for _ in range(8)]
                        for off in (dice.gauss(1, 0.003) for _ in range(rounds))
                    ]
                    flat = sorted(s for one in samples for s in one)
                    median, low, high = (flat[int(len(flat) * q)] for q in (0.5, 0.3, 0.7))
                    baseline = baseline or median
                    faster = baseline / median
                    yield Record(
                        "bench",
                        f"{op}/{way}",
                        f"{shape},dtype={dtype}",
                        Status.PASS,
                        f"{median * 1e6:.1f} µs",
                        "20000101-000000-synthe",
                        evidence={
                            "device": "cuda",
                            "method": "events on a held stream",
                            "rounds": rounds,
                            "converged": True,
                            "hot": {"median": median * 0.8, "samples": [[s * 0.8 for s in one] for one in samples]},
                            "call": {"median": median + 9e-6, "samples": [[s + 9e-6 for s in one] for one in samples]},
                            "baseline": f"{op}/torch",
                            "speedup": {"median": faster, "interval": [faster * 0.99, faster * 1.01]},
                            "bytes": moved,
                            "operations": n * work,
                            "gbps": moved / median / 1e9,
                            "copy": {"median": copy, "interval": [copy * 0.99, copy * 1.01]},
                            "share_of_copy": copy / median,
                            "roofline": {
                                "bound": "memory",
                                "seconds": moved / STREAM,
                                "share": moved / STREAM / median,
                                "model": f"{GPU}, measured",
                                "measured": True,
                            },
                            "launches": 1,
                        },
                        replay=f"assay bench {op}/{way} --workload {shape},dtype={dtype}",
                        source={"file": f"assay/library/{op}/{way}.py", "line": 7, "hash": "0" * 16},
                        provenance=MADE,
                        seconds=1.5,
                        median=median,
                        interval=(low, high),
                        samples=samples,
                    )


def synthetic_machine():
    def figure(value, unit, published=None, where="", clock=1980.0):
        return {
            "value": value,
            "unit": unit,
            "low": value * 0.99,
            "high": value * 1.01,
            "clock_mhz": clock,
            "published": published,
            "where": where,
        }

    figures = {
        "dram.copy": figure(4.2e12, "B/s", 4.8e12, "made up"),
        "dram.read": figure(4.10e12, "B/s", 4.8e12, "made up"),
        "l2.read": figure(9.1e12, "B/s"),
        "shared.read": figure(3.1e13, "B/s"),
        "latency.l2": figure(251.0, "cycles", [219, 281], "made up"),
        "latency.dram": figure(640.0, "cycles"),
        "vector.fp32": figure(6.0e13, "op/s", 6.7e13, "made up"),
        "tensor.mma.bf16": figure(6.6e14, "op/s"),
        "tensor.wgmma.bf16": figure(8.0e14, "op/s", 9.89e14, "made up"),
        "launch.stream": figure(2.4e-6, "s", clock=None),
        "clock.mma": figure(1.755e9, "Hz", 1.98e9, "made up"),
    }
    model = {"device": GPU, "source": "measured", "run": "synthetic", "time": MADE["time"], "figures": figures}
    return Record("machine", "machine", "", Status.PASS, "synthetic", "synthetic", {"model": model}, provenance=MADE)


def failed(record):
    reason = "guard: it wrote outside its tensors: 0 bytes after `out` <script>alert(1)</script> & more"
    return replace(record, status=Status.FAIL, reason=reason, median=None, interval=None, samples=None)


def everything():
    checks = read(H200 / "check.json")
    broken = [
        failed(next(r for r in checks if r.kernel == "gelu/triton")),
        replace(next(r for r in checks if r.kernel == "sum/numba"), status=Status.COMPILED, reason="no GPU here"),
    ]
    kept = [r for r in checks if (r.kernel, r.workload) not in {(b.kernel, b.workload) for b in broken}]
    benches = list(synthetic_benches(sizes=(10, 12, 14), rounds=4, ways={w: WAYS[w] for w in FEW}))
    return [*broken, *kept, *read(H200 / "selftest.json"), *benches[1:], failed(benches[0]), synthetic_machine()]


_EVERY = everything()
SOME = [
    *_EVERY[:6],
    *[r for r in _EVERY if r.verb == "selftest"][:3],
    *[r for r in _EVERY if r.verb == "bench"][:60:6],
    *_EVERY[-3:],
]
"""A few of each verb."""
