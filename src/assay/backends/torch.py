"""PyTorch eager: the baseline others are measured against."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from assay import host
from assay.backends.base import Availability, Backend, Level, missing
from assay.errors import Unsupported
from assay.op import Op

_NO_KERNEL = ("No available kernel", "No viable backend for scaled_dot_product_attention")
"""How PyTorch's error begins if the selected fused kernel does not support this device, format or shape."""


class Torch(Backend):
    name, title, packages = "torch", "PyTorch eager", ("torch",)

    def availability(self) -> Availability:
        if gone := missing(("torch", "pip install torch")):
            return gone
        return Availability(Level.RUN, "", device="cuda" if host.runs_on_gpu() else "cpu")

    def prepare(self, mode: str) -> None:
        in_full_precision()

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if not str(error).startswith(_NO_KERNEL):
                raise
            reasons = [reason for reason in _warnings(function, args, kwargs) if _is_reason(reason)]
            raise Unsupported("; ".join(dict.fromkeys(reasons)) or str(error).splitlines()[0]) from None


def _warnings(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The warnings of a call that fails. PyTorch gives its reasons as warnings, for every kernel under a heading."""
    with warnings.catch_warnings(record=True) as caught, contextlib.suppress(RuntimeError):
        warnings.simplefilter("always")
        function(*args, **kwargs)
    return [str(w.message).partition(" (Triggered internally")[0].strip() for w in caught]


def _is_reason(text: str) -> bool:
    """Whether the text is a reason: neither a heading nor a note that a kernel is disabled."""
    return "not used because" not in text and "runtime disabled" not in text


def in_full_precision() -> None:
    """Turns off TF32 in fp32 convolutions and 16-bit sums of 16-bit products on a GPU: both are PyTorch's defaults, but
    they compute other functions than the op, faster."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def derive(op: Op) -> Callable[..., None]:
    """The op's reference as a kernel: evaluated in the workload's dtype, results copied into the given outputs."""

    def reference(*inputs: Any, **named: Any) -> None:
        attributes = {n: named[n] for n in op.attributes}
        results = op.reference(*inputs, **attributes)
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(op.outputs, results, strict=True):
            if named.get(name) is not None:
                named[name].copy_(result)

    return reference


BACKEND = Torch()
