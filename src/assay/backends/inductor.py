"""torch.compile. It falls back to eager silently; here every fallback is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay import host
from assay.backends import vector_isa
from assay.backends.base import Availability, Backend, Level, missing
from assay.backends.torch import derive as derive_eager
from assay.backends.torch import in_full_precision
from assay.op import Op


class Inductor(Backend):
    name, title, packages = "inductor", "torch.compile", ("torch", "triton")

    def availability(self) -> Availability:
        import shutil

        if gone := missing(("torch", "pip install torch")):
            return gone
        if host.runs_on_gpu():
            return Availability(Level.RUN, "", device="cuda")
        if not (shutil.which("g++") or shutil.which("c++")):
            return Availability(Level.MISSING, "inductor needs a C++ compiler on the CPU", "apt-get install g++")
        return Availability(Level.RUN, "")

    def prepare(self, mode: str) -> None:
        import torch._dynamo.config as dynamo
        import torch._inductor.config as inductor

        in_full_precision()
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


def derive(op: Op) -> Callable[..., Any]:
    import torch

    compiled: Callable[..., Any] = torch.compile(derive_eager(op), fullgraph=True, dynamic=True)
    return compiled


BACKEND = Inductor()
