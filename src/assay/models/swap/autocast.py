"""What autocast does to an op's inputs, learnt from PyTorch itself: its lists differ between devices and versions."""

from __future__ import annotations

from functools import cache

import torch

from assay import inputs
from assay.op import Op
from assay.workload import Workload

KEEP, WIDEN, NARROW = "keep", "widen", "narrow"


def target(op: Op, device: str) -> torch.dtype | None:
    """The dtype that autocast, as it is set now, casts this op's inputs to; None: it leaves them."""
    if not torch.is_autocast_enabled(device):
        return None
    chosen = torch.get_autocast_dtype(device)
    policy = _policy(op.name, op.source, device, chosen)
    return None if policy == KEEP else torch.float32 if policy == WIDEN else chosen


_ops: dict[tuple[str, str], Op] = {}


def remember(op: Op) -> None:
    """So that `target` can be asked with constants alone, while a graph is traced."""
    _ops[op.name, op.source] = op


def known(name: str, source: str) -> Op:
    return _ops[name, source]


@cache
def _policy(name: str, source: str, device: str, chosen: torch.dtype) -> str:
    """The reference is run on a tiny input in either dtype. Cast to the narrow one: convolutions, matrix products.
    Widened: softmax and norms on a GPU."""
    op = _ops[name, source]
    sizes = ",".join(f"{axis}={max(1, declared.min)}" for axis, declared in op.axes.items())
    drawn = inputs.generate(Workload.of(op, sizes))
    attributes = {n: a.default for n, a in op.attributes.items()}

    def result(number: torch.dtype) -> torch.dtype:
        given = [drawn[n].to(device, number) if n in drawn else None for n in op.inputs]
        with torch.no_grad(), torch.autocast(device, chosen):
            out = op.reference(*given, **attributes)
        made: torch.dtype = (out[0] if isinstance(out, tuple) else out).dtype
        return made

    try:
        if result(torch.float32) == chosen:
            return NARROW
        return WIDEN if result(chosen) == torch.float32 else KEEP
    except RuntimeError:  # this device cannot do it in that dtype, and will say so itself
        return KEEP
