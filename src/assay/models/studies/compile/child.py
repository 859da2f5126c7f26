"""The process that compiles the model, reports the cost, and times the result beside eager. It is run as a module by
assay.worker.fresh; its environment sets the cache folders."""

from __future__ import annotations

import ast
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay import syntax
from assay.errors import AssayError
from assay.models.measure import Arm, Clock, WaitedClock, in_turn
from assay.models.studies import dynamo
from assay.models.studies.agreement import agreement, leaves
from assay.models.studies.compile.planning import FIRST, Case, Effort
from assay.models.subject.subject import Setup, Subject, load
from assay.worker.fresh import Tick, serve
from assay.worker.stopwatch import HeldStream, HostClock

_RECORDED = 10
"""Calls recorded on a GPU, several so that a count per call that is not a whole number shows."""
Call = Callable[[], Any]


@dataclass(frozen=True)
class Bench:
    """A model, its inputs, and a clock."""

    subject: Subject
    asked: Case
    effort: Effort
    clock: Clock

    def call(self, batch: int, function: Any) -> Call:
        args, named = self.subject.inputs(batch)
        return lambda: function(*args, **named)

    def compile(self) -> Any:
        import torch

        mode = self.asked.mode if self.asked.backend == "inductor" else None
        return torch.compile(self.subject.model, backend=self.asked.backend, mode=mode, dynamic=self.asked.dynamic)

    def once(self, call: Call) -> tuple[float, Any]:
        """Return the seconds of one call, including the wait for the device, and its result."""
        self.clock.finish()
        began = time.perf_counter()
        returned = call()
        self.clock.finish()
        return time.perf_counter() - began, returned

    def several(self, call: Call, count: int) -> list[float]:
        """Return the seconds of each of `count` calls."""
        return [self.once(call)[0] for _ in range(count)]

    def expected(self, batch: int) -> tuple[Any, Any, float]:
        """Return the model's outputs in float64, its eager outputs, and the seconds of that first eager call."""
        exact = leaves(self.subject.exact(batch))
        seconds, returned = self.once(self.call(batch, self.subject.model))
        return exact, leaves(returned), seconds


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
    """Study the state cold, disk or warm at one batch size."""
    (batch,) = bench.asked.batches
    warm = bench.asked.state == "warm"
    tick("the model in float64")
    exact, plain, eager_first = bench.expected(batch)
    eager = bench.call(batch, bench.subject.model)
    dynamo.forget()
    compiled = bench.call(batch, bench.compile())
    answer: dict[str, Any] = {"eager_first_seconds": eager_first}
    tick("compiling")
    if warm:
        answer["before_seconds"] = bench.several(compiled, FIRST)
    first, returned = bench.once(compiled)
    answer |= {"counts": dynamo.counts(), "phases": dynamo.phases()}
    if not answer["counts"]["graphs"]:
        fix = "see its graph breaks with TORCH_LOGS=graph_breaks"
        raise AssayError("nothing was compiled: no graph was captured", fix=fix)
    answer["outputs"] = agreement(exact, plain, leaves(returned)).to_dict("eager", "compiled")
    del returned  # CUDA graphs reuse its memory
    answer["first_seconds"] = [first, *bench.several(compiled, FIRST - 1)]
    if not bench.effort.rounds:  # this run only fills the caches
        return answer

    tick("counting calls")
    curves = {"compiled": _curve(bench, compiled, answer["first_seconds"]), "eager": _curve(bench, eager, [])}
    tick("timing eager and compiled in turn")
    arms = [Arm("eager", eager), Arm("compiled", compiled)]
    turns = in_turn(arms, bench.clock, bench.effort.rounds, bench.effort.budget)
    answer |= {"curve": curves, "samples": turns.samples, "batch": turns.batch}
    if bench.asked.device == "cuda":
        held = in_turn(arms, HeldStream(), bench.effort.rounds, bench.effort.budget / 2)
        answer["device_samples"] = held.samples

    tick("counting kernels")
    answer["kernels"] = _kernels(bench.asked, eager, compiled)
    if warm:
        tick("compiling again")
        dynamo.forget()
        answer["again_seconds"] = bench.several(bench.call(batch, bench.compile()), FIRST)
    if answer["counts"]["breaks"]:
        tick("looking for graph breaks")
        answer["graph_breaks"] = dynamo.breaks(bench.subject.model, *bench.subject.inputs(batch))
    return answer


def _curve(bench: Bench, call: Call, first: list[float]) -> list[list[float]]:
    """Return the measured total seconds of the first n calls, for as many n as the budget allows."""
    wanted = list(marks(bench.effort.calls))
    curve = [[done, sum(first[:done])] for done in range(1, len(first) + 1) if done in wanted]
    done, spent, steady = len(first), sum(first), 0.0
    for mark in (m for m in wanted if m > len(first)):
        calls = mark - done
        if steady * calls > bench.effort.budget:
            break
        seconds, _ = bench.once(lambda calls=calls: [call() for _ in range(calls)])  # type: ignore[misc]
        done, spent, steady = mark, spent + seconds, seconds / calls
        curve.append([done, spent])
    return curve


def marks(most: int) -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, … below `most`, and `most` itself."""
    scale = 1
    while scale <= most:
        yield from (m * scale for m in (1, 2, 5) if m * scale < most)
        scale *= 10
    if most > 0:
        yield most


def _sweep(bench: Bench, tick: Tick) -> dict[str, Any]:
    """Run every batch size in turn in one process, to see which of them recompile and at what cost."""
    dynamo.forget()
    function = bench.compile()
    steps: list[dict[str, Any]] = []
    for batch in bench.asked.batches:
        tick(f"batch {batch}")
        exact, plain, _ = bench.expected(batch)
        call = bench.call(batch, function)
        before = dynamo.counts()
        first, returned = bench.once(call)
        after, other = dynamo.counts(), leaves(returned)
        del returned  # CUDA graphs reuse its memory
        steps.append(
            {
                "batch": batch,
                "first_seconds": [first, *bench.several(call, FIRST - 1)],
                "compilations": after["frames"] - before["frames"],
                "graphs": after["graphs"] - before["graphs"],
                "outputs": agreement(exact, plain, other).to_dict("eager", "compiled"),
            }
        )
    return {
        "steps": steps,
        "counts": dynamo.counts(),
        "recompiles": sum(s["compilations"] for s in steps[1:]),
        "recompile_reasons": dynamo.recompile_reasons(),
    }


# Kernels of one call. On a GPU these are all kernels that CUPTI recorded. On the CPU there is no such record: counted
# are the operators called, and the C++ kernels that inductor wrote and calls between them.


def _kernels(asked: Case, eager: Call, compiled: Call) -> dict[str, Any]:
    kernels = {"eager": per_call(eager, asked.device), "compiled": per_call(compiled, asked.device)}
    if asked.backend == "inductor":
        kernels["compiled"]["written"] = own = written()
        if asked.device == "cpu":  # the profiler sees operators, but not the C++ kernels between them
            kernels["compiled"]["kernels"] += sum(own.values())
    return kernels


def per_call(call: Call, device: str) -> dict[str, Any]:
    if device == "cuda":
        from assay.worker.activity import record

        seen = record(lambda i: call(), _RECORDED, None)
        return {"kernels": seen["launches"], "names": seen["names"], "device_seconds": seen["seconds"]}
    called = Counter(_operators(call))
    return {"kernels": sum(called.values()), "names": dict(called.most_common(12))}


def written() -> dict[str, int]:
    """Return how often each kernel written by inductor is called, by name, in all graphs this process has loaded."""
    from torch._inductor.codecache import PyCodeCache

    files = [file for module in PyCodeCache.modules if (file := getattr(module, "__file__", None))]
    return dict(Counter(name for file in files for name in kernel_calls(Path(file).read_text())))


def kernel_calls(source: str) -> list[str]:
    """Return the kernels called in the `call` function of a graph's generated module. Kernels are defined at its top as
    `name = async_compile.cpp_pybinding(…)` and called as `name(…)` or `name.run(…)`."""
    tree = syntax.module(source)
    kernels = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _compiles(node.value)
    }
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "call"]
    called = [node.func for f in functions for node in ast.walk(f) if isinstance(node, ast.Call)]
    plain = [c.value if isinstance(c, ast.Attribute) and c.attr == "run" else c for c in called]
    return [c.id for c in plain if isinstance(c, ast.Name) and c.id in kernels]


def _compiles(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "async_compile"
    )


def _operators(call: Call) -> Iterator[str]:
    """Yield the outermost operators that compute; operators that they call are not counted."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    waiting = [e for e in profile.events() or [] if e.cpu_parent is None]
    while waiting:
        event = waiting.pop()
        if "::" in event.name and computes(event.name):
            yield event.name
        else:
            waiting += event.cpu_children


@cache
def computes(name: str) -> bool:
    """Return whether an operator computes; False if it only returns a view of its argument or uninitialised memory."""
    import torch

    space, _, bare = name.partition("::")
    if bare.startswith(("empty", "new_empty")):
        return False
    packet = getattr(getattr(torch.ops, space, None), bare, None)
    if packet is None:
        return True
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    return not all(_gives_back(schema) for schema in schemas)


def _gives_back(schema: Any) -> bool:
    first = schema.returns[0].alias_info if schema.returns else None
    return first is not None and not first.is_write


if __name__ == "__main__":
    serve(answer)
