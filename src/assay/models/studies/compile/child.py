"""The process itself: compile the model, say what that cost, and time it beside eager. Run as a module, by
assay.worker.fresh; its environment says where the caches are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError
from assay.models.measure import Arm, Clock, WaitedClock, in_turn
from assay.models.studies import dynamo
from assay.models.studies.agreement import agreement, leaves
from assay.models.studies.compile import launches
from assay.models.studies.compile.planning import FIRST, Case, Effort
from assay.models.subject.subject import Setup, Subject, load
from assay.worker.fresh import Tick, serve
from assay.worker.stopwatch import HeldStream, HostClock


@dataclass(frozen=True)
class Bench:
    """A model, its inputs, and a clock to time it by."""

    subject: Subject
    asked: Case
    effort: Effort
    clock: Clock

    def eager(self, batch: int) -> Callable[[], Any]:
        args, named = self.subject.inputs(batch)
        return lambda: self.subject.model(*args, **named)

    def compiled(self, batch: int, function: Any) -> Callable[[], Any]:
        args, named = self.subject.inputs(batch)
        return lambda: function(*args, **named)

    def compile(self) -> Any:
        import torch

        mode = self.asked.mode if self.asked.backend == "inductor" else None
        return torch.compile(self.subject.model, backend=self.asked.backend, mode=mode, dynamic=self.asked.dynamic)

    def once(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds, waited for, and what was returned."""
        self.clock.finish()
        began = time.perf_counter()
        returned = call()
        self.clock.finish()
        return time.perf_counter() - began, returned


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    import torch

    asked, effort = case(question["case"]), Effort(**question["effort"])
    dynamo.strict(effort.limit)
    tick("building the model")
    subject = load(Setup(asked.model, asked.dtype, asked.device, effort.seed, effort.threads))
    clock: Clock = WaitedClock() if asked.device == "cuda" else HostClock()
    bench = Bench(subject, asked, effort, clock)
    with torch.no_grad(), _limit_is_an_error():
        answered = _sweep(bench, tick) if asked.state == "sweep" else _state(bench, tick)
    return answered | {
        "threads": torch.get_num_threads() if asked.device == "cpu" else None,
        "method": clock.method,
        "parameter_count": sum(p.numel() for p in subject.model.parameters()),
    }


def case(data: Mapping[str, Any]) -> Case:
    return Case(**{**data, "batches": tuple(data["batches"])})


@contextlib.contextmanager
def _limit_is_an_error() -> Iterator[None]:
    import torch._dynamo.config as config
    from torch._dynamo.exc import FailOnRecompileLimitHit

    try:
        yield
    except FailOnRecompileLimitHit:
        why = "; ".join(dict.fromkeys(dynamo.recompile_reasons()[-1:]))
        raise AssayError(
            f"torch.compile gives up after {config.recompile_limit} compilations of one function and would run it "
            f"eagerly from there on, with no more than a warning{': ' + why if why else ''}",
            fix="--dynamic, fewer batch sizes, or --recompile-limit",
        ) from None


def _state(bench: Bench, tick: Tick) -> dict[str, Any]:
    """Cold, from disk, or warm: at one batch size."""
    (batch,) = bench.asked.batches
    eager = bench.eager(batch)
    tick("the model in float64")
    exact = leaves(bench.subject.exact(batch))
    eager_first, returned = bench.once(eager)
    plain = leaves(returned)

    dynamo.forget()
    function = bench.compile()
    compiled = bench.compiled(batch, function)
    found: dict[str, Any] = {"eager_first_seconds": eager_first}
    tick("compiling")
    if bench.asked.state == "warm":
        found["before_seconds"] = [bench.once(compiled)[0] for _ in range(FIRST)]
    first, returned = bench.once(compiled)
    found |= {"counts": dynamo.counts(), "phases": dynamo.phases()}
    if not found["counts"]["graphs"]:
        raise AssayError(
            "nothing was compiled: no graph was captured", fix="see its graph breaks with TORCH_LOGS=graph_breaks"
        )
    found["outputs"] = agreement(exact, plain, leaves(returned)).to_dict("eager", "compiled")
    del returned  # CUDA graphs use its memory again
    found["first_seconds"] = [first, *(bench.once(compiled)[0] for _ in range(FIRST - 1))]
    if not bench.effort.rounds:  # only to fill the caches
        return found

    tick("counting calls")
    found["curve"] = {
        "compiled": _curve(bench, compiled, found["first_seconds"]),
        "eager": _curve(bench, eager, []),
    }
    tick("timing eager and compiled in turn")
    arms = [Arm("eager", eager), Arm("compiled", compiled)]
    turns = in_turn(arms, bench.clock, bench.effort.rounds, bench.effort.budget)
    found |= {"samples": turns.samples, "batch": turns.batch}
    if bench.asked.device == "cuda":
        held = in_turn(arms, HeldStream(), bench.effort.rounds, bench.effort.budget / 2)
        found["device_samples"] = held.samples

    tick("counting kernels")
    found["kernels"] = _kernels(bench.asked, eager, compiled)
    if bench.asked.state == "warm":
        tick("compiling again")
        dynamo.forget()
        again = bench.compiled(batch, bench.compile())
        found["again_seconds"] = [bench.once(again)[0] for _ in range(FIRST)]
    if found["counts"]["breaks"]:
        tick("looking for graph breaks")
        args, named = bench.subject.inputs(batch)
        found["graph_breaks"] = dynamo.breaks(bench.subject.model, args, named)
    return found


def _curve(bench: Bench, call: Callable[[], Any], first: list[float]) -> list[list[float]]:
    """Seconds that the first n calls took together, measured, for as many n as the budget allows."""
    done, spent, curve = 0, 0.0, []
    wanted = list(marks(bench.effort.calls))
    for seconds in first:
        done, spent = done + 1, spent + seconds
        if done in wanted:
            curve.append([done, spent])
    steady = 0.0
    for mark in wanted:
        if mark <= done:
            continue
        if steady and steady * (mark - done) > bench.effort.budget:
            break
        calls = mark - done

        def several(calls: int = calls) -> None:
            for _ in range(calls):
                call()

        seconds, _ = bench.once(several)
        done, spent, steady = mark, spent + seconds, seconds / calls
        curve.append([done, spent])
    return curve


def marks(most: int) -> Iterator[int]:
    """1, 2, 5, 10, 20, … up to `most`, and `most` itself."""
    scale = 1
    while scale <= most:
        yield from (m * scale for m in (1, 2, 5) if m * scale < most)
        scale *= 10
    if most > 0:
        yield most


def _kernels(asked: Case, eager: Callable[[], Any], compiled: Callable[[], Any]) -> dict[str, Any]:
    found = {"eager": launches.per_call(eager, asked.device), "compiled": launches.per_call(compiled, asked.device)}
    if asked.backend == "inductor":
        mine = launches.written()
        found["compiled"]["written"] = mine
        if asked.device == "cpu":  # the profiler sees operators, not the C++ between them
            found["compiled"]["kernels"] += sum(mine.values())
    return found


def _sweep(bench: Bench, tick: Tick) -> dict[str, Any]:
    """Every batch size in one process, one after the other: which of them compile anew, and at what cost."""
    dynamo.forget()
    function = bench.compile()
    steps: list[dict[str, Any]] = []
    for batch in bench.asked.batches:
        tick(f"batch {batch}")
        exact = leaves(bench.subject.exact(batch))
        _, returned = bench.once(bench.eager(batch))
        plain = leaves(returned)
        call = bench.compiled(batch, function)
        before = dynamo.counts()
        first, returned = bench.once(call)
        after = dynamo.counts()
        mine = leaves(returned)
        del returned  # CUDA graphs use its memory again
        rest = [bench.once(call)[0] for _ in range(FIRST - 1)]
        steps.append(
            {
                "batch": batch,
                "first_seconds": [first, *rest],
                "compilations": after["frames"] - before["frames"],
                "graphs": after["graphs"] - before["graphs"],
                "outputs": agreement(exact, plain, mine).to_dict("eager", "compiled"),
            }
        )
    return {
        "steps": steps,
        "counts": dynamo.counts(),
        "recompiles": sum(s["compilations"] for s in steps[1:]),
        "recompile_reasons": dynamo.recompile_reasons(),
    }


if __name__ == "__main__":
    serve(answer)
