"""A number format inside a model in training, with a straight-through gradient.

The rule: forward gives `format.quantized(x)`. Backward gives the incoming gradient unchanged where x lies within
`format.limits`, both ends included, and zero where x lies beyond them (it saturated) or is NaN. Formats whose scale
depends on the data have infinite limits, so the gradient passes everywhere except at a NaN. The dependence of a scale
on x has no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from assay.compress.formats.kernels import rounded

if TYPE_CHECKING:
    from torch import Tensor

    from assay.compress.formats.format import NumberFormat


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, form: NumberFormat) -> Tensor:
        low, high = form.limits
        ctx.save_for_backward((x >= low) & (x <= high))
        return rounded(form, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (inside,) = ctx.saved_tensors
        return torch.where(inside, gradients[0], 0.0), None


def through(form: NumberFormat, x: Tensor) -> Tensor:
    """Return `form.quantized(x)`, with a gradient."""
    quantized: Tensor = _Through.apply(x, form)
    return quantized
