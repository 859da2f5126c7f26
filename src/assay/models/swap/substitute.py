"""A kernel at a site. Whether it can take a call is decided once for each signature; other calls go to the original and
are counted with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.autograd import profiler

from assay import inputs
from assay.models.operators.contract import PLAIN, Remembered, transformed
from assay.models.operators.operator import Operator, for_training
from assay.models.swap.report import Entry
from assay.op import Op
from assay.swappable import Call, Tensors
from assay.workload import Workload


class Layout:
    """Converts between a model's tensors and the op's: `lower` before the kernel, `lift` after it."""

    def lower(self, call: Call) -> list[torch.Tensor | None]:
        return [t if t is None else t.contiguous() for t in call.tensors]

    def lift(self, out: torch.Tensor, call: Call) -> torch.Tensor:
        return out


class Flat(Layout):
    """For an elementwise op: one long row. A dense tensor in another order (channels last) is read in memory order, as
    in PyTorch, and the output has the same order."""

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
    """For an op over rows: leading dimensions are rows. Rows may be strided if the op allows it."""

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
    """Return the tensor flat and contiguous. If it already is, no view is made: a view takes time, and is recorded in
    training."""
    if tensor is None or (tensor.dim() == 1 and tensor.is_contiguous()):
        return tensor
    return tensor.reshape(-1).contiguous()


def copied(before: Tensors, after: list[torch.Tensor | None]) -> bool:
    """Return whether lowering copied one of the tensors."""
    pairs = zip(before, after, strict=True)
    return any(a is not None and b is not None and a.data_ptr() != b.data_ptr() for a, b in pairs)


def layout_of(op: Op) -> Callable[[Call], Layout]:
    """Return the function that chooses the layout of the op's calls."""
    first, *rest = (len(tensor.shape) for tensor in op.inputs.values())
    if first > 2 or max(rest, default=0) > 1:
        return lambda call: AS_IS
    if first == 2:
        return lambda call: _ROWS
    return _flat


AS_IS, _FLAT, _ROWS = Layout(), Flat(), Rows()


def _flat(call: Call) -> Layout:
    first: Any = call.tensors[0]
    if first.is_contiguous() or torch.compiler.is_compiling():  # a compiler chooses its own memory order
        return _FLAT
    if any(t is not None and t.stride() != first.stride() for t in call.tensors):
        return _FLAT
    order = sorted(range(first.dim()), key=lambda i: (-first.stride(i), i))
    return InMemoryOrder(order) if first.permute(order).is_contiguous() else _FLAT


KEEP, WIDEN, NARROW = "keep", "widen", "narrow"
_OWN_AUTOCAST = "under autocast its formula chooses its own dtypes"


def autocast_dtype(op: Op, device: str) -> torch.dtype | None:
    """Return the dtype to which autocast, as currently set, casts this op's inputs; None if it leaves them."""
    if not torch.is_autocast_enabled(device):
        return None
    chosen = torch.get_autocast_dtype(device)
    policy = _policy(op.name, op.source, device, chosen)
    return None if policy == KEEP else torch.float32 if policy == WIDEN else chosen


_ops: dict[tuple[str, str], Op] = {}
"""Ops by name and file, so that autocast's dtype can be looked up with constants only while a graph is traced."""


@cache
def _policy(name: str, source: str, device: str, chosen: torch.dtype) -> str:
    """Find out what autocast does to an op by running its reference on a tiny input in either dtype, because PyTorch's
    lists differ between devices and versions. Convolutions and matrix products are cast to the narrow dtype; softmax
    and norms on a GPU are widened."""
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
    except RuntimeError:  # this device does not support it in that dtype, and will raise an error itself
        return KEEP


class Decision(NamedTuple):
    """The decision on all calls of one signature."""

    refusal: str
    layout: Layout = AS_IS
    cast: torch.dtype | None = None
    copies: bool = False
    """Whether an input must be copied first."""


class Substitute:
    def __init__(self, plain: Operator, entry: Entry, own_autocast: bool = False) -> None:
        """`own_autocast`: the original is a formula of several PyTorch functions, each autocast separately."""
        self.op, self.entry, self.tally = plain.op, entry, entry.tally
        self._plain = plain
        trained = for_training(plain)
        self._saving = None if trained is plain else trained
        """Operator for calls that need a gradient, if it differs."""
        self._layout_of, self._own_autocast = layout_of(plain.op), own_autocast
        self._decisions: Remembered[Decision] = Remembered()
        _ops[plain.op.name, plain.op.source] = plain.op

    def attempt(self, call: Call) -> torch.Tensor | None:
        """Return the kernel's result, or None if it cannot take the call."""
        if torch.compiler.is_compiling():
            return self._traced(call)
        first = call.tensors[0]
        if not isinstance(first, torch.Tensor):
            return self.refuse(f"called with a {type(first).__name__}")
        if reason := transformed():
            return self.refuse(reason)
        try:
            key = (
                call.attributes,
                call.cols,
                _autocast(first) if torch._C._is_any_autocast_enabled() else None,
                *[t if t is None else (t.__class__, t.shape, t.stride(), t.dtype, t.device) for t in call.tensors],
            )
        except RuntimeError:  # some layouts have no strides
            return self.refuse("a tensor without strides")
        decision = self._decisions.of(key, lambda: self._decide(call))
        if decision.refusal:
            return self.refuse(decision.refusal)
        if decision.cast is not None:
            call = _cast(call, decision.cast)
        self.tally.calls += 1
        self.tally.copied += decision.copies
        if profiler._is_profiler_enabled:
            with profiler.record_function(self.entry.range):
                return self._compute(decision.layout, call)
        return self._compute(decision.layout, call)

    def _compute(self, layout: Layout, call: Call) -> torch.Tensor:
        return layout.lift(self._run(layout.lower(call), call), call)

    def refuse(self, reason: str) -> torch.Tensor | None:
        """Count the reason and return no result, so that the original is called."""
        self.tally.fall_back(reason)
        return None

    def _run(self, lowered: list[torch.Tensor | None], call: Call) -> torch.Tensor:
        recorded = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in lowered)
        if recorded and self._saving is not None:
            out: torch.Tensor = self._saving.recorded(*lowered, *call.attributes)[0]
        elif recorded:
            out = self._plain.recorded(*lowered, *call.attributes)
        else:
            out = self._plain.unrecorded(*lowered, *call.attributes)
        return out

    def _decide(self, call: Call) -> Decision:
        for tensor in call.tensors:
            if tensor is not None and tensor.__class__ not in PLAIN:
                return Decision(f"a {tensor.__class__.__name__} is not a plain tensor")
            if tensor is not None and tensor.layout != torch.strided:
                return Decision(f"a {str(tensor.layout).removeprefix('torch.')} tensor")
        layout = self._layout_of(call)
        first: Any = call.tensors[0]
        number = autocast_dtype(self.op, first.device.type)
        if self._own_autocast and torch.is_autocast_enabled(first.device.type):
            return Decision(_OWN_AUTOCAST)
        with torch.no_grad():
            cast = call if number is None else _cast(call, number)
            lowered = layout.lower(cast)
        refusal = self._plain.contract.refusal(lowered, call.attributes)
        if not refusal and any(t is not None and t.requires_grad for t in call.tensors):
            self.entry.backward = self._plain.gradient.by(number or first.dtype)
        return Decision(refusal, layout, None if cast is call else number, copied(cast.tensors, lowered))

    def _traced(self, call: Call) -> torch.Tensor | None:
        """Attempt the call inside torch.compile, without cache or counters in the graph; shape checks become guards."""
        first: Any = call.tensors[0]
        if torch.is_autocast_enabled(first.device.type):
            number = _traced_target(self.op.name, self.op.source, first.device.type)
            if self._own_autocast:
                return self.refuse(_OWN_AUTOCAST)
            if number:
                call = _cast(call, getattr(torch, number))
        layout = self._layout_of(call)
        lowered = layout.lower(call)
        refusal = self._plain.contract.refusal(lowered, call.attributes)
        if refusal:
            return self.refuse(refusal)
        self.tally.call()
        return layout.lift(self._run(lowered, call), call)


@torch.compiler.assume_constant_result
def _traced_target(name: str, source: str, device: str) -> str:
    number = autocast_dtype(_ops[name, source], device)
    return str(number).removeprefix("torch.") if number is not None else ""


def _cast(call: Call, number: torch.dtype) -> Call:
    """Cast the tensors as autocast does, which never casts from float64."""
    if all(t is None or t.dtype in (number, torch.float64) for t in call.tensors):
        return call
    return call._replace(
        tensors=tuple(t if t is None or t.dtype == torch.float64 else t.to(number) for t in call.tensors)
    )


def _autocast(tensor: torch.Tensor) -> torch.dtype | None:
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
