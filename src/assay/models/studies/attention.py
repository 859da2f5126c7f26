"""Attention by sequence length: a preset that runs check and bench on all kernels of the op.

Every kernel is checked on the shortest sequence and timed on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from assay import host, provenance
from assay.bench import verb as bench
from assay.check import verb as check
from assay.check.job import Job
from assay.record import Record
from assay.settings import settings_of
from assay.worker.fresh import Tick

LENGTHS = {"cpu": (128, 256, 512, 1024, 2048), "cuda": (512, 1024, 2048, 4096, 8192, 16384)}
DTYPES = {"cpu": ("fp32",), "cuda": ("bf16",)}


@dataclass(frozen=True)
class Options:
    """Options of the study."""

    kernels: tuple[str, ...] = ("attention",)
    """Kernels, as for check and bench."""
    lengths: tuple[int, ...] = ()
    """Numbers of queries, and equally of keys. Empty: depends on the device."""
    batch: int = 1
    heads: int = 8
    dim: int = 64
    causal: tuple[bool, ...] = (False, True)
    dtypes: tuple[str, ...] = ()
    """Empty: fp32 on a CPU, bf16 on a GPU."""
    against: str = "torch"
    rounds: int = 5
    budget: float = 4.0
    threads: int = 0
    seconds: float = 120.0
    seed: int = 0
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Plan:
    checks: list[Job]
    cells: list[bench.BenchPlan]
    bench: bench.Options

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.checks) + sum(len(cell.kernels) for cell in self.cells)


def sweeps(options: Options) -> list[list[str]]:
    """Return the workloads as text for each dtype and mask, shortest sequence first."""
    device = "cuda" if host.runs_on_gpu() else "cpu"
    lengths = sorted(set(options.lengths or LENGTHS[device]))
    return [
        [
            f"batch={options.batch},heads={options.heads},queries={length},keys={length},dim={options.dim},"
            f"causal={int(causal)},dtype={dtype},seed={options.seed}"
            for length in lengths
        ]
        for dtype in options.dtypes or DTYPES[device]
        for causal in options.causal
    ]


def plan(options: Options) -> Plan:
    points = sweeps(options)
    timing = bench.Options(
        against=(options.against,),
        rounds=options.rounds,
        budget=options.budget,
        threads=options.threads,
        seconds=options.seconds,
        seed=options.seed,
        run=options.run,
    )
    return Plan(
        [job for first, *_ in points for job in check.plan(options.kernels, check.Options(workload=first))],
        [c for sweep in points for at in sweep for c in bench.plan(options.kernels, replace(timing, workload=at))],
        timing,
    )


def attention(options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Check the op's kernels, then time them. Yield the records of both verbs, in one run."""
    chosen = options or settings_of(Options, settings)
    yield from run(plan(chosen))


def run(planned: Plan, tick: Tick = lambda text: None) -> Iterator[Record]:
    options = planned.bench
    yield from check.run(planned.checks, check.Options(seconds=options.seconds, seed=options.seed, run=options.run))
    yield from bench.run(planned.cells, options, tick)
