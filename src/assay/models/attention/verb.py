"""The verb itself: which cells follow from what a user set, and a record for each arm and cell."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assay import provenance
from assay.bench.statistics import Estimate, estimate, ratio
from assay.dtype import dtype
from assay.errors import UsageError
from assay.models import memory
from assay.models.attention.arms import ARMS, NAIVE
from assay.models.attention.cell import Cell
from assay.models.device import device as device_called
from assay.models.turns import NEEDED
from assay.record import Record, Status
from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused, Tick

_CHILD = "assay.models.attention.child"
LENGTHS = {"cpu": (128, 256, 512, 1024, 2048), "cuda": (512, 1024, 2048, 4096, 8192, 16384)}
DTYPES = ("fp32", "bf16", "fp16")
"""float64 is the truth the others are held against."""


@dataclass(frozen=True)
class Options:
    """What a user may set."""

    lengths: tuple[int, ...] = ()
    """Empty: as many as the device is good for."""
    batch: int = 1
    heads: int = 8
    dim: int = 64
    causal: tuple[bool, ...] = (False, True)
    dtypes: tuple[str, ...] = ()
    """Empty: fp32 on a CPU, bf16 on a GPU."""
    device: str = ""
    arms: tuple[str, ...] = tuple(ARMS)
    rounds: int = 10
    budget: float = 4.0
    """Seconds for each arm and cell. An arm of which six calls take longer is left out."""
    threads: int = 0
    timeout: float = 600.0
    """Seconds for one cell."""
    seed: int = 0
    run: str = field(default_factory=provenance.new_run)


def plan(options: Options) -> list[Cell]:
    """Short sequences first: their times tell which arms the long ones can afford."""
    device = device_called(options.device)
    for name in options.arms:
        if name not in ARMS:
            raise UsageError(f"no arm called '{name}'", fix=f"--arm {','.join(ARMS)}")
    formats = [dtype(d).name for d in options.dtypes or (("bf16",) if device == "cuda" else ("fp32",))]
    for name in formats:
        if name not in DTYPES:
            raise UsageError(f"attention is not judged in {name}", fix=f"--dtype {','.join(DTYPES)}")
    lengths = sorted(set(options.lengths or LENGTHS[device]))
    if min(*lengths, options.batch, options.heads, options.dim) < 1:
        raise UsageError("every size is at least 1", fix="--seq 128,512 --heads 8 --dim 64 --batch 1")
    return [
        Cell(options.batch, options.heads, seq, options.dim, causal, number, device)
        for number in formats
        for causal in options.causal
        for seq in lengths
    ]


def attention(options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Compare ways to compute attention. One record for each arm and cell."""
    chosen = options or Options(**settings)
    yield from run(plan(chosen), chosen)


def run(cells: list[Cell], options: Options, tick: Tick = lambda text: None) -> Iterator[Record]:
    with tempfile.TemporaryDirectory(prefix="assay-attention-") as caches:
        study = _Study(options, {"TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": f"{caches}/triton"}, tick)
        try:
            for cell in cells:
                yield from study.records(cell)
        finally:
            study.close()


class _Study:
    """Two processes that live as long as nothing ends them: one times and judges, the other weighs."""

    def __init__(self, options: Options, environment: dict[str, str], tick: Tick) -> None:
        self.options, self.tick = options, tick
        self._environment = {"time": environment, "weigh": environment | memory.ENVIRONMENT}
        self._alive: dict[str, Fresh] = {}
        self._known: dict[tuple[str, bool, str], tuple[int, float]] = {}

    def records(self, cell: Cell) -> Iterator[Record]:
        began = time.monotonic()
        names = [name for name in ARMS if name in self.options.arms]
        too_long = {name: why for name in names if (why := self._too_long(name, cell))}
        names = [name for name in names if name not in too_long]
        found = self._ask("time", cell, names) if names else {"arms": {}}
        if isinstance(found, str):
            yield from (_record(name, cell, self.options, Status.FAIL, found, {}) for name in names)
            found = {"arms": {}}
        timed = [name for name, mine in found["arms"].items() if mine.get("samples")]
        weighed = self._weigh(cell, timed)
        seconds = (time.monotonic() - began) / max(1, len(found["arms"]))
        shared = {k: v for k, v in found.items() if k != "arms"}
        samples = {name: found["arms"][name]["samples"] for name in timed}
        for name, mine in found["arms"].items():
            if "guess_seconds" in mine:
                self._known[name, cell.causal, cell.dtype] = (cell.seq, mine.pop("guess_seconds"))
            if name in timed:
                steady = estimate(mine["samples"])
                evidence = _evidence(name, cell, mine, samples, steady, shared) | weighed.get(name, {})
                status, reason = _verdict(evidence)
                yield _record(name, cell, self.options, status, reason, evidence, seconds, steady, mine["samples"])
            elif "refused" in mine:
                why = mine.pop("refused")
                yield _record(name, cell, self.options, Status.SKIPPED, why, shared | mine, seconds)
            else:
                told = mine["failure"]
                reason = f"{told['type']}: {told['message']}".splitlines()[0]
                yield _record(name, cell, self.options, Status.FAIL, reason, shared | {"failure": told}, seconds)
        for name, why in too_long.items():
            yield _record(name, cell, self.options, Status.SKIPPED, why, {})

    def _too_long(self, name: str, cell: Cell) -> str:
        """By the square law, from the length before."""
        if (known := self._known.get((name, cell.causal, cell.dtype))) is None:
            return ""
        seq, median = known
        guess = NEEDED * median * (cell.seq / seq) ** 2
        if guess <= self.options.budget:
            return ""
        return f"{NEEDED} calls would take about {guess:.3g} s, more than --budget {self.options.budget:g}"

    def _weigh(self, cell: Cell, names: list[str]) -> dict[str, dict[str, Any]]:
        """On the CPU, where it takes a process of its own. What it cannot tell is left out."""
        if cell.device == "cuda":
            return {name: {"memory": memory.HOW["cuda"]} for name in names}
        found = self._ask("weigh", cell, names) if names else {}
        if isinstance(found, str):
            return {name: {"memory": f"not measured: {found}"} for name in names}
        return {name: mine | {"memory": memory.HOW["cpu"]} for name, mine in found.items()}

    def _ask(self, what: str, cell: Cell, names: list[str]) -> dict[str, Any] | str:
        options = self.options
        question = {
            "do": what,
            "cell": cell.to_dict(),
            "arms": names,
            "rounds": options.rounds,
            "budget": options.budget,
            "threads": options.threads,
            "seed": options.seed,
        }
        process = self._alive.get(what) or Fresh(_CHILD, self._environment[what])
        self._alive[what] = process
        try:
            return process.ask(question, options.timeout, lambda text: self.tick(f"seq {cell.seq}: {text}"))
        except Refused as problem:
            return str(problem)
        except WorkerLost as lost:
            self._alive.pop(what).__exit__()
            return lost.detail

    def close(self) -> None:
        for process in self._alive.values():
            process.__exit__()


def _evidence(
    name: str, cell: Cell, mine: dict[str, Any], samples: dict[str, Any], steady: Estimate, shared: dict[str, Any]
) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if NAIVE in samples and name != NAIVE:
        more["speedup"] = ratio(samples[NAIVE], samples[name]).to_dict()
    return {
        **shared,
        **{k: v for k, v in mine.items() if k != "samples"},
        **more,
        "baseline": ARMS[NAIVE],
        "operations": cell.operations,
        "bytes": cell.bytes,
        "scores_bytes": cell.scores,
        "tflops": cell.operations / steady.median / 1e12,
        "gbps": cell.bytes / steady.median / 1e9,
    }


def _verdict(evidence: dict[str, Any]) -> tuple[Status, str]:
    off = evidence["errors"]
    if missed := [name for name, seen in evidence["controls_rejected"].items() if not seen]:
        return Status.INCONCLUSIVE, f"the measure of error does not tell a right answer from a wrong one: {missed[0]}"
    if off["astray"]:
        return Status.FAIL, f"{off['astray']} elements are not finite"
    figures = f"{off['rms']:.3g} units (rms), at worst {off['worst']:.3g}"
    if off["share"] > 1:
        return Status.FAIL, f"wrong: off float64 by {figures}; {off['share']:.3g}× the limit, {off['limit']}"
    return Status.PASS, f"off float64 by {figures}; {off['share']:.0%} of the limit"


def _record(
    name: str,
    cell: Cell,
    options: Options,
    status: Status,
    reason: str,
    evidence: dict[str, Any],
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
) -> Record:
    replay = (
        f"assay model attention --seq {cell.seq} --heads {cell.heads} --dim {cell.dim} --batch {cell.batch} "
        f"--causal {'yes' if cell.causal else 'no'} --dtype {cell.dtype} --device {cell.device} "
        f"--arm {','.join(dict.fromkeys((NAIVE, name)))}"
    )
    return Record(
        "model",
        ARMS[name],
        str(cell),
        status,
        reason,
        options.run,
        {"study": "attention", "arm": name, "device": cell.device, **evidence},
        replay,
        provenance=provenance.provenance(options.seed),
        seconds=seconds,
        median=steady.median if steady else None,
        interval=steady.interval if steady else None,
        samples=samples,
    )
