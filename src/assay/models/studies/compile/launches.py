"""Inside the process: how many kernels one call runs. On the GPU as CUPTI recorded them. On the CPU there is no such
record: operators called, and the C++ kernels that inductor wrote and calls between them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from assay import syntax

_CALLS = 10
"""Recorded on a GPU, so that a count per call that is not whole shows."""


def per_call(call: Callable[[], Any], device: str) -> dict[str, Any]:
    if device == "cuda":
        from assay.worker.activity import record

        seen = record(lambda i: call(), _CALLS, None)
        return {"kernels": seen["launches"], "names": seen["names"], "device_seconds": seen["seconds"]}
    called = Counter(_operators(call))
    return {"kernels": sum(called.values()), "names": dict(called.most_common(12))}


def written() -> dict[str, int]:
    """Calls of kernels that inductor wrote, by the kernel's name, in all graphs this process has loaded."""
    from torch._inductor.codecache import PyCodeCache

    found: Counter[str] = Counter()
    for module in PyCodeCache.modules:
        if file := getattr(module, "__file__", None):
            found.update(kernel_calls(Path(file).read_text()))
    return dict(found)


def kernel_calls(source: str) -> list[str]:
    """In the `call` of a graph's generated module: `name = async_compile.cpp_pybinding(…)` above, `name(…)` or
    `name.run(…)` in it."""
    tree = syntax.module(source)
    kernels = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _compiles(node.value)
    }
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name != "call":
            continue
        for node in ast.walk(function):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "run":
                called = called.value
            if isinstance(called, ast.Name) and called.id in kernels:
                found.append(called.id)
    return found


def _compiles(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "async_compile"
    )


def _operators(call: Callable[[], Any]) -> Iterator[str]:
    """The outermost operators that compute: what they call inside is theirs."""
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
    """False of an operator that gives its argument back under another shape, or memory with nothing in it."""
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
