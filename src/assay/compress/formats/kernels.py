"""Rounding by a kernel of the library if there is one: `int_round`, for integers of up to 8 bits on a GPU.

The results are bit for bit those of `NumberFormat.quantized`, which writes the whole tensor to memory at every step of
the rule."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from assay.compress.formats.integer import NARROW, Integer
from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from assay.compress.formats.format import NumberFormat
    from assay.models.operators.operator import Operator


def rounded(form: NumberFormat, x: Tensor) -> Tensor:
    """Return `form.quantized(x)`."""
    if isinstance(form, Integer) and form.width <= NARROW and x.is_cuda and x.dtype == torch.float32 and x.numel():
        kernel = _on_gpu()
        if kernel is not None:
            return by(kernel, form, x.detach())
    return form.quantized(x)


def by(kernel: Operator, form: Integer, x: Tensor) -> Tensor:
    """Return the same, computed by a kernel of `int_round` on one row for each group."""
    values: Tensor = kernel.call(form.groups.split(x).contiguous(), form.width)
    return form.groups.join(values, x.shape)


@cache
def _on_gpu() -> Operator | None:
    """Return the operator of `int_round`, or None if no kernel can be built here."""
    from assay.models.operators.choice import choose
    from assay.models.operators.operator import operator

    try:
        return operator(*choose("int_round", "int_round", "cuda", "int_round"))
    except UsageError:
        return None
