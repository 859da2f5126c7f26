"""PyTorch eager: the baseline others are measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay import host
from assay.backends.base import Availability, Backend, Level, missing
from assay.op import Op


class Torch(Backend):
    name, title, packages = "torch", "PyTorch eager", ("torch",)

    def availability(self) -> Availability:
        if gone := missing(("torch", "pip install torch")):
            return gone
        return Availability(Level.RUN, "", device="cuda" if host.runs_on_gpu() else "cpu")

    def prepare(self, mode: str) -> None:
        in_full_precision()


def in_full_precision() -> None:
    """By default PyTorch's fp32 convolutions are TF32 on a GPU, and its 16-bit products may be summed in 16 bits: other
    functions than the op's, and faster."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def derive(op: Op) -> Callable[..., None]:
    """The op's reference as a kernel: evaluated in the workload's dtype, results copied into the outputs asked for."""

    def reference(*inputs: Any, **named: Any) -> None:
        attributes = {n: named[n] for n in op.attributes}
        results = op.reference(*inputs, **attributes)
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(op.outputs, results, strict=True):
            if named.get(name) is not None:
                named[name].copy_(result)

    return reference


BACKEND = Torch()
