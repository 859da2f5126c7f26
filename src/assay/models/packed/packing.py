"""Packs linear layers and restores them, for rules of `assay.swap` that name a format, `mx_linear` or `int_linear`."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from assay.catalog import library
from assay.errors import UsageError
from assay.kernel import Address, Kernel
from assay.models.packed.format import INTEGER, MX_FLOATS, Format, MxInt8, Packed, find, integer
from assay.op import Axis, Op, Tensor

if TYPE_CHECKING:
    import torch
    from torch import nn

    from assay.models.operators.contract import Tally
    from assay.models.packed.linear import PackedLinear
    from assay.models.packed.spill import Spilled

FROZEN = "PyTorch's; the packed weight is frozen"


@dataclass(frozen=True)
class Original:
    """A weight taken out of its model. Layers that share the weight share this object and one packed copy."""

    weight: nn.Parameter
    gradient: torch.Tensor | None
    shape: tuple[int, int]
    dtype: torch.dtype
    spilled: Spilled

    def give_back(self, device: torch.device, dtype: torch.dtype) -> None:
        """Restore the weight. `device`, `dtype`: those of the model now."""
        self.spilled.restore(device, None if dtype == self.dtype else dtype)
        if self.weight.grad is None:
            self.weight.grad = self.gradient


def take(weight: nn.Parameter, kind: Format) -> tuple[Original, Packed]:
    """Write the weight's data to a file, pack it, and release its memory. An error leaves it as it was."""
    from assay.models.packed.spill import Spilled

    tensors: dict[str, torch.Tensor] = {"weight": weight}
    if weight.grad is not None:
        tensors["gradient"] = weight.grad
    rows, cols = weight.shape
    original = Original(weight, weight.grad, (rows, cols), weight.dtype, Spilled(tensors))
    try:
        packed = kind.pack(weight.detach())
        original.spilled.release()
        weight.grad = None  # so that an optimiser's step skips it
    except BaseException:
        original.give_back(weight.device, weight.dtype)
        raise
    return original, packed


@dataclass(frozen=True)
class Packing:
    """The replacement of linear layers by packed ones, for one format."""

    op: str
    """The name in a rule: an op of the library, or a format."""
    format: str
    language: str = ""
    """Language of the kernel if a rule names it beside a format; empty: the best one available here."""
    site: str = "linear"
    backward: str = FROZEN

    def refusal(self, module: nn.Module, kind: type[nn.Module], kernel: Kernel) -> str:
        """Return why the module cannot be packed; empty if it can. It must hold just a weight and a bias, and the
        weight must have memory of its own, so that it can be taken out and put back."""
        from torch import nn

        weight = module._parameters.get("weight")
        if weight is None:
            return "its weight is computed by a parametrisation or a hook"
        if kind is not nn.Linear:
            return f"{kind.__name__} is a class of its own over nn.Linear: what else it does with its weight is unknown"
        if more := sorted({*module._parameters, *module._buffers, *module._modules} - {"weight", "bias"}):
            return f"it holds more than a weight and a bias: {', '.join(more)}"
        return _unfit(weight, kernel)

    def build(self, module: nn.Module, kernel: Kernel, op: Op, tally: Tally) -> nn.Module:
        import torch

        from assay.models.packed.linear import PackedLinear

        weight, bias = module._parameters["weight"], module._parameters["bias"]
        assert isinstance(weight, torch.nn.Parameter)
        kind, first = find(self.format, kernel.address.backend), _packed.get(id(weight))
        if first is not None and first.format.name != self.format:
            raise UsageError(
                f"a weight that layers share cannot be {first.format.name} and {self.format}", fix="name one"
            )
        with torch.inference_mode(False), torch.no_grad():
            original, packed = _shared(first) if first is not None else take(weight, kind)
            try:
                built = PackedLinear(packed, original.shape, bias, original.dtype, kind).standing_for(module)
                if kind.op:
                    built.with_kernel(kernel, library.find_op(kind.op) if op.name == self.op != kind.op else op)
            except BaseException:
                if first is None:
                    original.give_back(weight.device, weight.dtype)
                raise
        built.tally = tally
        _originals[built] = original
        _packed.setdefault(id(weight), built)
        return built

    def restore(self, module: nn.Module, built: nn.Module) -> None:
        import torch

        from assay.models.packed.linear import PackedLinear

        assert isinstance(built, PackedLinear)
        original = _originals.get(built)
        if original is None:
            return
        with torch.inference_mode(False), torch.no_grad():
            original.give_back(built.like.device, built.like.dtype)
        del _originals[built]
        _packed.pop(id(original.weight), None)

    def chosen(self, device: str) -> tuple[Kernel, Op] | None:
        """Return the kernel and op of a rule that names a format which is not an op of the library; None if it is."""
        multiplied = find(self.format).op
        if self.op == multiplied:
            return None
        if not multiplied:
            return Kernel(Address(self.op, "torch"), None), _declared(self.op)
        from assay.models.operators.choice import choose

        kernel, op = choose(kernel_of(self.op), multiplied, device, self.op)
        return kernel, replace(op, name=self.op)  # the name by which the packing is looked up


_originals: weakref.WeakKeyDictionary[PackedLinear, Original] = weakref.WeakKeyDictionary()
_packed: weakref.WeakValueDictionary[int, PackedLinear] = weakref.WeakValueDictionary()
"""Packed layers by the id of the Parameter, which lives as long as the layer's Original."""
PACKINGS = (
    Packing("mx_linear", MxInt8.name),
    Packing("int_linear", INTEGER.name),
    *(Packing(f.name, f.name) for f in MX_FLOATS),
)


@cache
def packing(name: str) -> Packing | None:
    """Return the packing of an integer format, given alone or with the language of the kernel that multiplies by it:
    `int4:group=128`, `int8:channel/triton`. Different spellings of one format give the same packing."""
    kind, slash, language = name.partition("/")
    whole = integer(kind)
    if whole is None:
        return None
    exact = whole.name + slash + language
    return Packing(exact, whole.name, language) if name == exact else packing(exact)


def kernel_of(value: str) -> str:
    """Return the library's name for a rule's value: `int_linear/cuda` for `int8:channel/cuda`. Others are unchanged."""
    known = packing(value)
    return value if known is None else find(known.format).op + (f"/{known.language}" if known.language else "")


def _shared(first: PackedLinear) -> tuple[Original, Packed]:
    return _originals[first], Packed(first.elements, first.scales)


def _unfit(weight: torch.Tensor, kernel: Kernel) -> str:
    import torch
    from torch import nn

    from assay.models.operators.contract import devices

    if type(weight) is not nn.Parameter:
        return f"its weight is a {type(weight).__name__}"
    if weight.device.type not in devices(kernel):
        return f"{kernel} runs on {' or '.join(devices(kernel))}, its weight is on {weight.device.type}"
    if weight.layout != torch.strided or weight.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        held = weight.dtype if weight.layout == torch.strided else weight.layout
        return f"its weight is {str(held).removeprefix('torch.')}"
    if not weight.numel():
        return "its weight is packed already, in another model" if id(weight) in _packed else "its weight is empty"
    if weight.is_inference():
        return "its weight was made in inference mode and cannot be changed"
    if weight.untyped_storage().nbytes() != weight.numel() * weight.element_size():
        return "its weight is part of a larger tensor, whose memory would stay"
    if weight.device.type == "cpu" and (weight.is_shared() or weight.is_pinned()):
        return "its weight is in pinned memory, or in memory shared with other processes"
    return ""


def _declared(name: str) -> Op:
    """Return an op for the report: x times the unpacked weight. No kernel of the library computes it."""

    def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        from torch.nn.functional import linear

        return linear(x, weight, bias)

    axes = {"m": Axis(), "n": Axis(), "k": Axis()}
    inputs = {"x": Tensor("m", "k"), "weight": Tensor("n", "k"), "bias": Tensor("n", optional=True)}
    return Op(name, reference, axes, inputs, {"out": Tensor("m", "n")})
