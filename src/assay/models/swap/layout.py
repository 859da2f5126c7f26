"""The tensors of a model's call, brought into the op's own shapes and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay.op import Op
from assay.swappable import Call, Tensors


class Layout:
    """How a model's tensors become the op's: `lower` before the kernel, `lift` after it."""

    def lower(self, call: Call) -> list[torch.Tensor | None]:
        return [t if t is None else t.contiguous() for t in call.tensors]

    def lift(self, out: torch.Tensor, call: Call) -> torch.Tensor:
        return out


class Flat(Layout):
    """An elementwise op: one long row. A dense tensor in another order (channels last) is taken in the order of memory,
    as PyTorch does, and comes out in it."""

    def lower(self, call: Call) -> list[torch.Tensor | None]:
        return [_flattened(t) for t in call.tensors]

    def lift(self, out: torch.Tensor, call: Call) -> torch.Tensor:
        first = call.tensors[0]
        assert first is not None
        return out if first.dim() == 1 else out.view(first.shape)


class InMemoryOrder(Flat):
    def __init__(self, order: list[int]) -> None:
        self.order = order
        self.back = sorted(range(len(order)), key=order.__getitem__)

    def lower(self, call: Call) -> list[torch.Tensor | None]:
        return [t if t is None else t.permute(self.order).reshape(-1) for t in call.tensors]

    def lift(self, out: torch.Tensor, call: Call) -> torch.Tensor:
        first = call.tensors[0]
        assert first is not None
        return out.view([first.shape[i] for i in self.order]).permute(self.back)


class Rows(Layout):
    """An op over rows: leading dimensions are rows. Rows may lie apart where the op allows it."""

    def lower(self, call: Call) -> list[torch.Tensor | None]:
        first, *rest = call.tensors
        assert first is not None
        rows = first if _are_rows(first, call) else first.reshape(-1, call.cols)
        if rows.stride(1) != 1 and call.cols > 1:
            rows = rows.contiguous()
        return [rows, *(_flattened(t) for t in rest)]

    def lift(self, out: torch.Tensor, call: Call) -> torch.Tensor:
        first = call.tensors[0]
        assert first is not None
        return out if _are_rows(first, call) else out.view(first.shape)


def _are_rows(tensor: torch.Tensor, call: Call) -> bool:
    return tensor.dim() == 2 and tensor.shape[1] == call.cols


def _flattened(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """In one dimension and contiguous. One that is already is not viewed: a view takes time, and in training it is
    recorded."""
    if tensor is None or (tensor.dim() == 1 and tensor.is_contiguous()):
        return tensor
    return tensor.reshape(-1).contiguous()


def copied(before: Tensors, after: list[torch.Tensor | None]) -> bool:
    """Did the op's shape cost a copy?"""
    pairs = zip(before, after, strict=True)
    return any(a is not None and b is not None and a.data_ptr() != b.data_ptr() for a, b in pairs)


def layout_of(op: Op) -> Callable[[Call], Layout]:
    """Which layout the op's calls get, chosen once for each shape."""
    rank = len(next(iter(op.inputs.values())).shape)
    if rank == 2:
        return lambda call: _ROWS
    if rank > 2:
        return lambda call: AS_IS
    return _flat


AS_IS, _FLAT, _ROWS = Layout(), Flat(), Rows()


def _flat(call: Call) -> Layout:
    first: Any = call.tensors[0]
    if first.is_contiguous() or torch.compiler.is_compiling():  # which chooses its own order of memory
        return _FLAT
    if any(t is not None and t.stride() != first.stride() for t in call.tensors):
        return _FLAT
    order = sorted(range(first.dim()), key=lambda i: (-first.stride(i), i))
    return InMemoryOrder(order) if first.permute(order).is_contiguous() else _FLAT
