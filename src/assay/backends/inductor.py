"""torch.compile. It falls back to eager silently; here every fallback is an error.

Where a kernel is timed, it is compiled for the shapes at hand, as users do (mode `static`). Where many shapes are
tried, one compilation with dynamic shapes serves most of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from assay import host
from assay.backends import vector_isa
from assay.backends.base import Availability, Backend, Level, missing
from assay.backends.torch import for_timing, in_full_precision
from assay.op import Op

_AUTOTUNED = {"max_autotune": "max-autotune-no-cudagraphs"}
"""torch.compile's `mode`, by variant. CUDA graphs are left to the harness, which captures every kernel."""
_dynamic = True


class Inductor(Backend):
    name, title, packages = "inductor", "torch.compile", ("torch", "triton")
    timed_mode = "static"
    tunes_itself = True

    def availability(self, variant: str = "") -> Availability:
        import shutil

        if gone := missing(("torch", "pip install torch")):
            return gone
        if host.runs_on_gpu():
            return Availability(Level.RUN, "", device="cuda")
        if variant == "max_autotune":
            why = "max-autotune times kernels on a GPU"
            return Availability(Level.MISSING, why, "run it on a machine with an NVIDIA GPU")
        if not (shutil.which("g++") or shutil.which("c++")):
            return Availability(Level.MISSING, "inductor needs a C++ compiler on the CPU", "apt-get install g++")
        return Availability(Level.RUN, "")

    def prepare(self, mode: str) -> None:
        import torch._dynamo.config as dynamo
        import torch._inductor.config as inductor

        global _dynamic
        _dynamic = mode != self.timed_mode
        in_full_precision()
        for_timing(mode)
        # After eight shapes dynamo runs eager, with only a warning. Allow many, and make the last one an error.
        dynamo.recompile_limit = 512
        dynamo.accumulated_recompile_limit = 4096
        dynamo.fail_on_recompile_limit_hit = True
        dynamo.suppress_errors = False
        inductor.compile_threads = 1
        if not host.runs_on_gpu():
            vector_isa.find()

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from torch._dynamo.utils import counters

        result = function(*args, **kwargs)
        if not counters["stats"]["unique_graphs"] or counters["graph_break"]:
            raise RuntimeError(
                f"torch.compile fell back to eager: {dict(counters['graph_break']) or 'no graph was compiled'}"
            )
        return result

    def chosen(self, mode: str, variant: str) -> str:
        shapes = "static" if mode == self.timed_mode else "dynamic"
        return f"torch.compile, {shapes} shapes, mode {_mode(variant)}"


def derive(op: Op, variant: str = "") -> Callable[..., Any]:
    """Return the op's reference, compiled. Writing the results into given tensors costs nothing: it is fused into the
    code that computes them."""

    def reference(*inputs: Any, **named: Any) -> None:
        results = op.reference(*inputs, **{n: named[n] for n in op.attributes})
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(op.outputs, results, strict=True):
            if named.get(name) is not None:
                named[name].copy_(result)

    return compiled(reference, _mode(variant))


def _mode(variant: str) -> str:
    return _AUTOTUNED.get(variant, "default")


@cache
def compiled(function: Callable[..., Any], mode: str = "default") -> Callable[..., Any]:
    """Compile a function with torch.compile: for static shapes where it is timed, for dynamic ones elsewhere."""
    import torch

    result: Callable[..., Any] = torch.compile(function, fullgraph=True, dynamic=_dynamic, mode=mode)
    return result


BACKEND = Inductor()
