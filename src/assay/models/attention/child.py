"""The process that runs the arms. Asked to `time`, it also judges them; asked to `weigh`, it only measures memory.
Run as a module, by assay.worker.fresh."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from assay.dtype import dtype
from assay.errors import AssayError
from assay.models import memory
from assay.models.attention import arms
from assay.models.attention.arms import Refusal, Way
from assay.models.attention.cell import Cell, cell
from assay.models.attention.truth import controls, judge, truth
from assay.models.rounding import Errors
from assay.models.turns import NEEDED, Arm, Clock, in_turn, sample
from assay.worker.failure import describe
from assay.worker.fresh import Tick, serve
from assay.worker.stopwatch import HeldStream, HostClock

if TYPE_CHECKING:
    import torch

_WARM = 2
"""Calls before anything is measured."""


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    import torch

    if question["threads"]:
        torch.set_num_threads(question["threads"])
    asked = cell(question["cell"])
    with torch.no_grad():
        inputs = _inputs(asked, question["seed"])
        if question["do"] == "weigh":
            return _weigh(asked, inputs, question["arms"], tick)
        return _time(asked, inputs, question, tick)


def _inputs(asked: Cell, seed: int) -> tuple[torch.Tensor, ...]:
    """Normal deviates: scores then have a standard deviation of one, whatever the head's dimension."""
    import torch

    draw = torch.Generator().manual_seed(seed)
    shape = (asked.batch, asked.heads, asked.seq, asked.dim)
    return tuple(torch.randn(shape, generator=draw).to(asked.device, dtype(asked.dtype).torch) for _ in range(3))


def _time(asked: Cell, inputs: tuple[torch.Tensor, ...], question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    import torch

    clock: Clock = HeldStream() if asked.device == "cuda" else HostClock()
    tick("float64")
    exact = truth(inputs, asked)
    found: dict[str, dict[str, Any]] = {}
    plain: Errors | None = None
    ready: list[Arm] = []
    for name in question["arms"]:
        tick(name)
        mine = found[name] = {}
        try:
            _fits(name, asked)
            chosen = arms.way(name)
            mine |= _first(chosen, inputs, asked, clock)
            out = mine.pop("out")
            off = exact.errors(out)
            del out
            mine["errors"] = judge(off, asked, plain)
            plain = off if name == arms.NAIVE else plain
            arm = Arm(name, _call(chosen, inputs, asked), chosen.around)
            guess = mine["guess_seconds"] = sample(arm, clock, 1)
            if NEEDED * guess > question["budget"]:
                raise Refusal(
                    f"{NEEDED} calls take about {NEEDED * guess:.3g} s, more than --budget {question['budget']:g}"
                )
            if asked.device == "cuda":
                mine |= memory.peak(_within(arm), "cuda")
            ready.append(arm)
        except Refusal as refusal:
            mine["refused"] = refusal.what
            if asked.device == "cuda":
                torch.cuda.empty_cache()
        except Exception as error:
            mine["failure"] = describe(error)
    tick("timing all in turn")
    turns = in_turn(ready, clock, question["rounds"], question["budget"])
    for name, samples in turns.samples.items():
        found[name] |= {"samples": samples, "calls": turns.batch[name]}
    return {
        "arms": found,
        "method": clock.method,
        "threads": torch.get_num_threads() if asked.device == "cpu" else None,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "rows_judged": int(exact.rows.numel()),
        "controls_rejected": controls(exact, inputs, asked, plain),
    }


def _fits(name: str, asked: Cell) -> None:
    """A GPU's allocator says no by itself; the CPU's memory would end the process, or others."""
    import psutil

    if asked.device == "cuda" or name not in arms.WRITES_SCORES:
        return
    needed, free = 3 * asked.scores * max(1, 4 // dtype(asked.dtype).itemsize), psutil.virtual_memory().available
    if needed > free:
        raise Refusal(f"its scores need about {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free")


def _first(chosen: Way, inputs: tuple[torch.Tensor, ...], asked: Cell, clock: Clock) -> dict[str, Any]:
    """The first call, which may compile, and the proof of what ran."""
    began = time.perf_counter()
    arms.first_call(chosen, inputs, asked.causal)
    clock.finish()
    told: dict[str, Any] = {"first_seconds": time.perf_counter() - began}
    told["ran"] = arms.operators(chosen, inputs, asked.causal)
    if chosen.name == "compiled":
        told["recognised"] = _recognised()
    call = _call(chosen, inputs, asked)
    with chosen.around():
        for _ in range(_WARM):
            out = call()
        clock.finish()
    return told | {"out": out}


def _recognised() -> int:
    """How often inductor knew the naive form for what it is, and put PyTorch's fused one in its place."""
    from torch._dynamo.utils import counters

    if not counters["stats"]["unique_graphs"]:
        raise AssayError("nothing was compiled: no graph was captured")
    return int(counters["inductor"]["fuse_attention"])


def _call(chosen: Way, inputs: tuple[torch.Tensor, ...], asked: Cell) -> Any:
    return lambda: chosen.attend(*inputs, asked.causal)


def _within(arm: Arm) -> Any:
    def call() -> None:
        with arm.around():
            arm.call()

    return call


def _weigh(asked: Cell, inputs: tuple[torch.Tensor, ...], names: list[str], tick: Tick) -> dict[str, Any]:
    found: dict[str, dict[str, int | None]] = {}
    for name in names:
        tick(f"{name}: memory")
        chosen = arms.way(name)
        call = _within(Arm(name, _call(chosen, inputs, asked), chosen.around))
        for _ in range(_WARM):
            call()
        found[name] = memory.peak(call, asked.device)
    return found


if __name__ == "__main__":
    serve(answer)
