"""What packing saved: bytes compared with theory, and the reason for every missing percentage point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from assay.errors import UsageError
from assay.models.subject.score import placed

if TYPE_CHECKING:
    import torch
    from torch import nn

GRAIN = 512
"""Bytes of which PyTorch's CUDA allocator allocates multiples."""
SHORT = "short blocks: a scale of their own, and what fills up their elements"
BIAS = "biases of packed layers"
EMBEDDINGS = "embeddings are looked up, not multiplied"
OTHERS = "norms and other parameters"
BUFFERS = "buffers"


@dataclass(frozen=True)
class Missing:
    """Bytes that theory would have saved and packing did not."""

    why: str
    bytes: float
    points: float
    """Per cent of the scope's bytes before packing."""


@dataclass(frozen=True)
class Scope:
    """Bytes of some of a model's tensors, before and after packing."""

    before: int
    after: int
    theory: float
    """Fraction that would be saved if every element took the format's bits."""
    missing: tuple[Missing, ...]
    """Their points add up to theory − saved."""
    rounding: int
    """Bytes that the CUDA allocator takes beyond `after`; 0 on a CPU."""
    saved: float
    """Fraction that was saved."""


@dataclass(frozen=True)
class Account:
    formats: tuple[str, ...]
    bits: float
    """Theoretical bits per element, averaged over all packed elements."""
    packed: int
    """Number of packed weights; one shared by several layers counts once."""
    elements: int
    weights: Scope
    layers: Scope
    """Weights and biases of the packed layers."""
    model: Scope

    def __str__(self) -> str:
        lines = [f"{self.packed} weights in {', '.join(self.formats)}, {self.bits:g} bits an element in theory"]
        for name in ("weights", "layers", "model"):
            scope: Scope = getattr(self, name)
            lines.append(f"{name}: {scope.before:,} → {scope.after:,} bytes, {scope.saved:.1%} saved")
            lines += [f"  {m.points:.2f} points of {scope.theory:.1%}: {m.why}" for m in scope.missing]
            lines += [f"  {scope.rounding:,} bytes more in the CUDA allocator's blocks"] if scope.rounding else []
        return "\n".join(lines)


@dataclass(frozen=True)
class _Part:
    """A tensor of the model, before and after packing."""

    why: str
    before: int
    after: int
    theory: float
    """Bytes that would be saved in theory."""
    rounding: int


class Report(Protocol):
    """The report of a swap; each site has `path`, `op`, `state` and `why`."""

    @property
    def sites(self) -> Iterable[Any]: ...


def account(model: nn.Module, report: Report | None = None) -> Account:
    """Return the account of a model with packed layers. `report` says why other layers were left."""
    from assay.models.packed.linear import PackedLinear

    layers = {m: None for m in model.modules() if isinstance(m, PackedLinear)}
    distinct = {m.elements.untyped_storage()._cdata: m for m in layers}
    if not distinct:
        raise UsageError(
            "nothing in this model is packed", fix='swap first: assay.swap(model, {"linear": "mx_linear"})'
        )
    elements = sum(m.in_features * m.out_features for m in distinct.values())
    bits = sum(m.format.bits * m.in_features * m.out_features for m in distinct.values()) / elements
    parts = list(_parts(model, report, bits))
    weights = [p for p in parts if p.why == SHORT]
    return Account(
        tuple(dict.fromkeys(m.format.name for m in layers)),
        bits,
        len(distinct),
        elements,
        _scope(weights),
        _scope([p for p in parts if p.why in (SHORT, BIAS)]),
        _scope(parts),
    )


def _parts(model: nn.Module, report: Report | None, bits: float) -> Iterator[_Part]:
    from torch import nn

    from assay.models.packed.linear import PackedLinear

    sites = [s for s in report.sites if s.op == "linear" and s.state == "left"] if report else []
    left = {model.get_submodule(s.path): s.why for s in sites}
    seen: set[int] = set()

    def new(tensor: torch.Tensor | None) -> bool:
        if tensor is None or not tensor.numel() or (key := tensor.untyped_storage()._cdata) in seen:
            return False
        seen.add(key)
        return True

    def plain(tensor: torch.Tensor, why: str) -> _Part:
        held = size(tensor)
        could = held - tensor.numel() * bits / 8 if tensor.is_floating_point() else 0.0
        return _Part(why, held, held, could, _rounding(tensor))

    # A tensor shared by two modules is counted for the one that comes first in this order.
    order = (PackedLinear, nn.Embedding, nn.Linear, nn.Module)
    for module in sorted(model.modules(), key=lambda m: next(i for i, k in enumerate(order) if isinstance(m, k))):
        if isinstance(module, PackedLinear) and new(module.elements):
            count = module.in_features * module.out_features
            new(module.scales)
            before = count * module.like.element_size()
            after = size(module.elements) + size(module.scales)
            rounding = _rounding(module.elements) + _rounding(module.scales)
            yield _Part(SHORT, before, after, before - count * module.format.bits / 8, rounding)
        why = _why(module, left)
        yield from (plain(p, why) for p in module._parameters.values() if p is not None and new(p))
        yield from (plain(b, BUFFERS) for b in module._buffers.values() if b is not None and new(b))


def _why(module: nn.Module, left: dict[nn.Module, str]) -> str:
    from torch import nn

    from assay.models.packed.linear import PackedLinear

    if isinstance(module, PackedLinear):
        return BIAS
    if isinstance(module, nn.Embedding):
        return EMBEDDINGS
    if module in left or isinstance(module, nn.Linear):
        return f"layers left: {left.get(module, 'not swapped')}"
    return OTHERS


def _scope(parts: list[_Part]) -> Scope:
    before, after = sum(p.before for p in parts), sum(p.after for p in parts)
    lost: dict[str, float] = {}
    for part in parts:
        lost[part.why] = lost.get(part.why, 0.0) + part.theory - (part.before - part.after)
    missing = tuple(Missing(why, bytes, 100 * bytes / before) for why, bytes in lost.items() if bytes)
    theory = sum(p.theory for p in parts) / before if before else 0.0
    saved = 1 - after / before if before else 0.0
    return Scope(before, after, theory, missing, sum(p.rounding for p in parts), saved)


def size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _rounding(tensor: torch.Tensor) -> int:
    return -size(tensor) % GRAIN if tensor.is_cuda else 0


@dataclass(frozen=True)
class Peak:
    """Peak memory of one forward pass, in bytes."""

    held: int
    """Held before it: on a GPU all allocated memory, on a CPU the model's tensors."""
    work: int
    """Peak beyond that, by PyTorch's allocator."""

    @property
    def total(self) -> int:
        return self.held + self.work


def peak(model: nn.Module, call: Callable[[], Any]) -> Peak:
    """Measure the peak of `call`, which runs the model and must have run before, so that memory which a first call
    leaves allocated is not counted."""
    import torch

    from assay.models import measure

    device = placed(model)[0].partition(":")[0]
    tensors = {t.untyped_storage()._cdata: t for t in (*model.parameters(), *model.buffers())}
    if device == "cuda":
        torch.cuda.synchronize()
    held = torch.cuda.memory_allocated() if device == "cuda" else sum(map(size, tensors.values()))
    return Peak(held, measure.peak(call, device))


def peak_saved(before: Peak, after: Peak, packed: Account) -> dict[str, Any]:
    """Return the peak expected from the saved bytes, the measured one, and where the difference comes from."""
    promised = before.total - (packed.model.before - packed.model.after)
    return {
        "before": {**vars(before), "total": before.total},
        "after": {**vars(after), "total": after.total},
        "promised": promised,
        "saved": 1 - after.total / before.total,
        "beyond_promise": {
            "work space of the forward pass": after.work - before.work,
            "memory held outside it: the allocator's rounding, what else was allocated": after.held
            - (before.held - (packed.model.before - packed.model.after)),
        },
    }
