"""PyTorch eager: the baseline that others are measured against."""

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
"""Prefixes of PyTorch's error if the selected fused kernel does not support this device, format or shape."""


class Torch(Backend):
    name, title, packages = "torch", "PyTorch eager", ("torch",)
    timed_mode = "static"

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("torch", "pip install torch")):
            return gone
        return Availability(Level.RUN, "", device="cuda" if host.runs_on_gpu() else "cpu")

    def prepare(self, mode: str) -> None:
        in_full_precision()
        for_timing(mode)

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if not str(error).startswith(_NO_KERNEL):
                raise
            reasons = [reason for reason in _warnings(function, args, kwargs) if _is_reason(reason)]
            raise Unsupported("; ".join(dict.fromkeys(reasons)) or str(error).splitlines()[0]) from None


def _warnings(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the warnings of a call that fails: PyTorch's reasons, under a heading for every kernel."""
    with warnings.catch_warnings(record=True) as caught, contextlib.suppress(RuntimeError):
        warnings.simplefilter("always")
        function(*args, **kwargs)
    return [str(w.message).partition(" (Triggered internally")[0].strip() for w in caught]


def _is_reason(text: str) -> bool:
    """Return whether the text is a reason: neither a heading nor a note that a kernel is disabled."""
    return "not used because" not in text and "runtime disabled" not in text


def in_full_precision() -> None:
    """Turn off TF32 in fp32 convolutions and 16-bit sums of 16-bit products on a GPU. Both are PyTorch's defaults, but
    they compute other functions than the op, faster."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def for_timing(mode: str) -> None:
    """Let cuDNN try its convolutions and keep the fastest, as users do whose shapes stay the same. Not where many
    shapes are tried: it takes seconds for each."""
    import torch

    torch.backends.cudnn.benchmark = mode == Torch.timed_mode


def derive(op: Op, variant: str = "") -> Callable[..., Any]:
    """Return the op's reference as a kernel: evaluated in the workload's dtype, as a user calls it, with the results
    returned. The outputs that it is given only determine which results are wanted, and in which format."""

    def reference(*inputs: Any, **named: Any) -> Any:
        results = op.reference(*inputs, **{n: named[n] for n in op.attributes})
        results = results if isinstance(results, tuple) else (results,)
        wanted = []
        for (name, declared), result in zip(op.outputs.items(), results, strict=True):
            if (out := named.get(name)) is not None:
                wanted.append(_own(result.to(out.dtype), inputs))
            elif not declared.optional and not op.outputs.keys() & named.keys():
                wanted.append(_own(result, inputs))
        return wanted[0] if len(wanted) == 1 else tuple(wanted)

    return reference


def _own(result: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the result in its own memory, since a reference may return a view of its input."""
    import torch

    dense = result.contiguous()
    memory = {i.untyped_storage().data_ptr() for i in inputs if isinstance(i, torch.Tensor)}
    return dense.clone() if dense.untyped_storage().data_ptr() in memory else dense


BACKEND = Torch()
