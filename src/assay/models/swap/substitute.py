"""A kernel in a site's place: whether it can take this call is decided once for each signature; what it cannot take
goes to the original, counted with the reason."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.autograd import profiler

from assay.models.operators.contract import PLAIN, transformed
from assay.models.operators.operator import Operator, for_training
from assay.models.operators.remembered import Remembered
from assay.models.swap import autocast
from assay.models.swap.layout import AS_IS, Layout, copied, layout_of
from assay.models.swap.report import Entry
from assay.swappable import Call

_OWN_AUTOCAST = "under autocast its formula chooses its own dtypes"


class Decision(NamedTuple):
    """About all calls of one signature."""

    refusal: str
    layout: Layout = AS_IS
    cast: torch.dtype | None = None
    copies: bool = False
    """An input lies so that it must be copied first."""


class Substitute:
    def __init__(self, plain: Operator, entry: Entry, own_autocast: bool = False) -> None:
        """`own_autocast`: the original is a formula of several PyTorch functions, each autocast by itself."""
        self.op, self.entry, self.tally = plain.op, entry, entry.tally
        self._plain = plain
        trained = for_training(plain)
        self._saving = None if trained is plain else trained
        """For calls that need a gradient."""
        self._layout_of, self._own_autocast = layout_of(plain.op), own_autocast
        self._decisions: Remembered[Decision] = Remembered()
        autocast.remember(plain.op)

    def attempt(self, call: Call) -> torch.Tensor | None:
        """The kernel's result, or None where it cannot take the call."""
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
        """No result, and the reason counted: the original's turn."""
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
        number = autocast.target(self.op, first.device.type)
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
        """Inside torch.compile: no cache, no counters in the graph; what depends on shapes becomes a guard."""
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
    number = autocast.target(autocast.known(name, source), device)
    return str(number).removeprefix("torch.") if number is not None else ""


def _cast(call: Call, number: torch.dtype) -> Call:
    """As autocast does it: never from float64."""
    if all(t is None or t.dtype in (number, torch.float64) for t in call.tensors):
        return call
    return call._replace(
        tensors=tuple(t if t is None or t.dtype == torch.float64 else t.to(number) for t in call.tensors)
    )


def _autocast(tensor: torch.Tensor) -> torch.dtype | None:
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
