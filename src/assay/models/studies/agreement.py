"""Compares the outputs of a model computed in another way with those of the same model in float64, relative to plain
PyTorch's error. Errors are in rounding units.

The unit is the format's eps times the root mean square of the element's row (the last axis): an element that happens to
be near zero is judged by the size of its neighbours, from which its rounding error comes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError

if TYPE_CHECKING:
    import torch

SLACK = 2.0
"""Factor over PyTorch's error, one bit: another order of operations costs that much, another precision costs more."""
EXTREME = 2 * SLACK
"""Factor for the worst of many elements, which varies from one order of operations to the next."""


@dataclass(frozen=True)
class Errors:
    rms: float
    median: float
    worst: float
    astray: int = 0
    """Elements that are finite where the truth is not, or vice versa."""


@dataclass(frozen=True)
class Agreement:
    plain: Errors
    other: Errors
    share: float
    """Error as a fraction of the tolerance, in the output that comes closest to it; above 1 is a failure."""
    ratio: float | None
    """The other's worst error over the plain one's; None if that is 0."""
    note: str = ""

    def to_dict(self, plain: str, other: str) -> dict[str, Any]:
        """Return the errors under the names of the two ways, and the other fields."""
        fields = asdict(self)
        return {plain: fields.pop("plain"), other: fields.pop("other"), **fields}


def wrong(name: str, plain: Errors, other: Errors, share: float, note: str) -> str:
    """Return a message that says what is wrong; empty if nothing is. `name`: the name of the plain way."""
    if share <= 1:
        return ""
    if note:
        return note
    if other.astray > plain.astray:
        return f"{other.astray} outputs are NaN or infinite where float64 is not, or the other way"
    off = f"{other.rms:.3g} rounding units off float64 (rms), {name} {plain.rms:.3g}"
    return f"the outputs are wrong: {off}; {share:.3g}× the tolerance"


def leaves(returned: Any) -> list[torch.Tensor]:
    """Return copies of the tensors in a model's outputs, which later calls cannot overwrite."""
    import torch
    from torch.utils import _pytree as pytree

    tensors = [leaf.detach().clone() for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
    if not tensors:
        raise AssayError(
            f"the model returned no tensor, but a {type(returned).__name__}",
            fix="return tensors, or a tuple, list or dict of them",
        )
    return tensors


def agreement(exact: list[torch.Tensor], plain: list[torch.Tensor], other: list[torch.Tensor]) -> Agreement:
    """Return the agreement of the output that is closest to its tolerance."""
    if [t.shape for t in plain] != [t.shape for t in other]:
        raise AssayError(f"it returns {_shapes(other)}, and in plain PyTorch {_shapes(plain)}")
    return max((_one(*of) for of in zip(exact, plain, other, strict=True)), key=lambda one: one.share)


def _one(exact: torch.Tensor, plain: torch.Tensor, other: torch.Tensor) -> Agreement:
    if other.dtype != plain.dtype:
        raise AssayError(f"it returns {other.dtype}, and in plain PyTorch {plain.dtype}")
    if other.is_floating_point():
        before, after = errors(plain, exact), errors(other, exact)
        return Agreement(before, after, share(after, before), after.worst / before.worst if before.worst else None)
    off = int((other != plain).sum())  # integers must equal plain PyTorch's
    none = Errors(0.0, 0.0, 0.0)
    return Agreement(none, none, 2.0 * (off > 0), None, f"{off} of {other.numel()} whole numbers differ")


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(str(tuple(t.shape)) for t in tensors)


def errors(got: torch.Tensor, exact: torch.Tensor) -> Errors:
    """Return the errors of `got` against the truth in float64, in rounding units of `got`'s format."""
    import torch

    exact = exact.double()
    finite = exact.isfinite()
    astray = int((got.isfinite() != finite).sum())
    clean = torch.where(finite, exact, torch.zeros_like(exact))
    rows = clean.square().mean(-1, keepdim=True).sqrt() if clean.dim() else clean.abs()
    # A row of zeros has no size of its own, so that of the whole tensor is used.
    whole = clean.square().mean().sqrt().clamp(min=torch.finfo(got.dtype).tiny)
    unit = torch.finfo(got.dtype).eps * torch.where(rows > 0, rows, whole)
    off = ((got.double() - exact).abs() / unit)[finite & got.isfinite()]
    if not off.numel():
        return Errors(0.0, 0.0, 0.0, astray)
    return Errors(float(off.square().mean().sqrt()), float(off.median()), float(off.max()), astray)


def share(other: Errors, plain: Errors) -> float:
    """Return the error as a fraction of the tolerance; above 1 it is wrong. The tolerance is SLACK times plain
    PyTorch's rms error in the same format, or EXTREME times its worst, where an error below one unit counts as one."""
    if other.astray > plain.astray:
        return float(10**9)
    return max(
        other.rms / (SLACK * max(plain.rms, 1.0)),
        other.worst / (EXTREME * max(plain.worst, 1.0)),
    )
