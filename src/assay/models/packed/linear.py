"""A linear layer that holds its weight only in packed form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from assay.catalog import library
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.models.operators.choice import choose
from assay.models.operators.contract import PLAIN, Remembered, Tally, transformed
from assay.models.operators.operator import Operator, operator
from assay.models.packed.format import Format, Packed
from assay.op import Op

READ = "somebody reads its weight: unpacked for the moment"
_TENSORS = ("_parameters", "_buffers", "_non_persistent_buffers_set", "_modules")


class PackedLinear(nn.Module):
    """x @ weightᵀ + bias. The packed weight is frozen; gradients go to x and to the bias."""

    elements: torch.Tensor
    scales: torch.Tensor
    like: torch.Tensor
    """Empty tensor with the dtype and device of the original weight; it follows calls such as `model.half()`."""
    bias: nn.Parameter | None

    def __init__(
        self, packed: Packed, shape: tuple[int, int], bias: nn.Parameter | None, dtype: torch.dtype, kind: Format
    ) -> None:
        """`shape`, `dtype`: those of the weight. `bias` is used as is, not copied."""
        super().__init__()
        self.out_features, self.in_features = shape
        self.format = kind
        self._attributes = kind.attributes(self.in_features)
        kind.prepare()
        self.register_buffer("elements", packed.elements)
        self.register_buffer("scales", packed.scales)
        self.register_buffer("like", packed.elements.new_empty(0, dtype=dtype), persistent=False)
        self.register_parameter("bias", bias)
        self.tally: Tally | None = None
        self.kernel: str | Path = ""
        """Kernel of the format's op: its address or, for a user's kernel, its file. Empty: the weight is unpacked for
        every call."""
        self._operator: Operator | None = None
        self._decisions: Remembered[str] = Remembered()

    def with_kernel(self, kernel: Kernel, op: Op) -> PackedLinear:
        own = kernel.file is not None and library.ROOT not in kernel.file.parents
        self.kernel = kernel.file if own and kernel.file else kernel.name
        self._operator = operator(kernel, op)
        return self

    def standing_for(self, layer: nn.Module) -> PackedLinear:
        """Take over the layer's hooks, mode and other attributes, such as those set by Hugging Face."""
        own = {*_TENSORS, *(vars(self).keys() - vars(nn.Module()).keys())}
        vars(self).update({name: value for name, value in vars(layer).items() if name not in own})
        return self

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        bias: torch.Tensor | None
        x, bias, number = input, self.bias, self.like.dtype
        if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:  # it casts a linear's arguments
            number = torch.get_autocast_dtype(x.device.type)
            x, bias = x.to(number), None if bias is None else bias.to(number)
        refusal = self._refusal(x, bias, number)
        if refusal:
            self._fall_back(refusal)
            return functional.linear(x, self.unpacked(number), bias)
        if torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad)):
            made: torch.Tensor = _Frozen.apply(x, bias, self.elements, self.scales, self)
            return made
        return self.multiply(x, bias)

    @property
    def weight(self) -> torch.Tensor:
        """The unpacked weight, for code that reads it instead of calling the layer; it is unpacked at every access."""
        self._fall_back(READ)
        return self.unpacked(self.like.dtype)

    def multiply(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Compute the layer without recording a gradient."""
        if self._operator is None:
            return functional.linear(x, self.unpacked(x.dtype), bias)
        rows = x.reshape(-1, self.in_features)
        if not x.is_contiguous():
            rows = rows.contiguous()
            if self.tally is not None and not torch.compiler.is_compiling():
                self.tally.copied += rows.data_ptr() != x.data_ptr()
        made: torch.Tensor = self._operator.unrecorded(rows, *self._operands(), bias, *self._attributes)
        return made.view(*x.shape[:-1], self.out_features)

    def _operands(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.format.operands(Packed(self.elements, self.scales))

    def unpacked(self, dtype: torch.dtype) -> torch.Tensor:
        return self.format.unpack(Packed(self.elements, self.scales), self.in_features, dtype)

    def _refusal(self, x: torch.Tensor, bias: torch.Tensor | None, number: torch.dtype) -> str:
        """Return why this call goes to PyTorch's linear with the weight unpacked; empty if it does not. Wrong arguments
        are a reason, too, so that PyTorch raises its usual error."""
        if x.dtype != number or x.dim() == 0 or x.shape[-1] != self.in_features:
            return f"called with {str(x.dtype).removeprefix('torch.')} of shape {tuple(x.shape)}"
        if type(x) not in PLAIN:
            return f"a {type(x).__name__} is not a plain tensor"
        if torch.compiler.is_compiling():
            return self._contract(x, bias)
        key = (x.shape, x.dtype, x.device, bias is None or (bias.dtype, bias.device))
        return self._decisions.of(key, lambda: self._contract(x, bias)) or transformed()

    def _contract(self, x: torch.Tensor, bias: torch.Tensor | None) -> str:
        if self._operator is None:
            return ""
        rows = x.detach().reshape(-1, self.in_features)
        return self._operator.contract.refusal((rows, *self._operands(), bias), self._attributes)

    def _fall_back(self, reason: str) -> None:
        if self.tally is not None:
            self.tally.fall_back(reason)

    def extra_repr(self) -> str:
        has = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return f"{has}, format={self.format.name}, kernel={self.kernel or 'none: unpacked for every call'}"

    # A copy or a pickle holds the packed weight and looks up its kernel again. Counts stay with the original's swap.

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "tally": None, "_operator": None, "_decisions": Remembered()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not self.kernel:
            return
        try:
            chosen = choose(self.kernel, self.format.op, self.elements.device.type, str(self.kernel))
        except AssayError:  # it cannot run on this machine
            self.kernel = ""
            return
        self.with_kernel(*chosen)


class _Frozen(torch.autograd.Function):
    """Saves only the packed weight, which exists anyway, for the backward pass: neither x nor an unpacked weight."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        bias: torch.Tensor | None,
        elements: torch.Tensor,
        scales: torch.Tensor,
        layer: PackedLinear,
    ) -> torch.Tensor:
        ctx.save_for_backward(elements, scales)
        ctx.layer = layer
        return layer.multiply(x, bias)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        layer, packed = ctx.layer, Packed(*ctx.saved_tensors)
        dx = dbias = None
        if ctx.needs_input_grad[0]:
            dx = dy @ layer.format.unpack(packed, layer.in_features, dy.dtype)
        if ctx.needs_input_grad[1]:
            dbias = dy.reshape(-1, dy.shape[-1]).sum(0)
        return dx, dbias, None, None, None
