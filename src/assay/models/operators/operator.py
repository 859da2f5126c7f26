"""A kernel as a PyTorch operator, `torch.ops.assay.gelu__triton`: functional, with a fake implementation and a
gradient.

Registered with `Library.define`, not `custom_op`: with each call the latter looks whether an output aliases an input,
which here none ever does (opcheck says so of every kernel, in the tests). Triton's kernels are operators like the
others, whose launches a compiler sees (`inlined`)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.autograd import profiler

from assay.catalog import library
from assay.kernel import Kernel
from assay.models.operators.contract import Contract
from assay.models.operators.gradient import Gradient
from assay.models.operators.implementation import differentiable, fake, implementation
from assay.models.operators.inlined import launches_are_seen, rule, traceable
from assay.models.operators.shapes import Shapes
from assay.op import Op

_LIBRARY = torch.library.Library("assay", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
_registered: dict[tuple[Any, ...], Operator] = {}
_lock = threading.RLock()


@dataclass(frozen=True)
class Operator:
    kernel: Kernel
    op: Op
    outputs: tuple[str, ...]
    """Given back, in this order."""
    contract: Contract
    gradient: Gradient
    call: Any
    """`call(*inputs, *attributes)`, and the dtype last where no input tells it: one tensor, or a tuple."""
    run: Callable[..., Any]
    """What the operator runs, past PyTorch's dispatcher: for calls that nobody watches."""
    differentiable: Callable[..., Any]
    """The same with the operator's gradient."""

    @property
    def name(self) -> str:
        return str(self.call.name())

    def unrecorded(self, *arguments: Any) -> Any:
        """A call that needs no gradient."""
        return (self.call if _watched() else self.run)(*arguments)

    def recorded(self, *arguments: Any) -> Any:
        """A call that is recorded for one."""
        return (self.call if _watched() else self.differentiable)(*arguments)


def _watched() -> bool:
    """Does a profiler, a compiler or a dispatch mode want to see the operator? Else the dispatcher only costs time."""
    return torch.compiler.is_compiling() or profiler._is_profiler_enabled or torch._C._len_torch_dispatch_stack() > 0


def operator(kernel: Kernel, op: Op, also: Sequence[str] = ()) -> Operator:
    """The kernel's operator, registered once in a process. `also`: optional outputs to be given back too."""
    key = (kernel.address, kernel.file, kernel.function, tuple(also))
    with _lock:
        if key not in _registered:
            _registered[key] = _register(kernel, op, tuple(also))
        return _registered[key]


def registered() -> list[Operator]:
    """Every operator of this process so far."""
    return list(_registered.values())


def for_training(plain: Operator) -> Operator:
    """The same kernel, giving back what its backward kernel reads; itself, where that is nothing or it cannot."""
    if plain.gradient.found is None:
        return plain
    kernel, op, read = plain.kernel, plain.op, plain.gradient.found[1].inputs
    saved = [n for n, t in op.outputs.items() if t.optional and n in read]
    return operator(kernel, op, saved) if kernel.file is None or {*saved} <= {*kernel.parameters} else plain


def _register(kernel: Kernel, op: Op, also: tuple[str, ...]) -> Operator:
    outputs = (*(n for n, t in op.outputs.items() if not t.optional), *also)
    shapes = Shapes(op, outputs)
    schema = ", ".join(
        [
            *(f"Tensor{'?' if t.optional and n not in kernel.requires else ''} {n}" for n, t in op.inputs.items()),
            *(f"{'int' if isinstance(a.default, int) else 'float'} {n}" for n, a in op.attributes.items()),
            *(["ScalarType dtype"] if shapes.carrier is None else []),
        ]
    )
    returns = ", ".join(["Tensor"] * len(outputs))
    name = _name(kernel, also)
    _LIBRARY.define(f"{name}({schema}) -> {returns if len(outputs) == 1 else f'({returns})'}", tags=_TAGS)
    run = implementation(kernel, op, shapes)
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"assay::{name}", fake(shapes), lib=_LIBRARY)
    if launches_are_seen(kernel):
        traced = rule(implementation(kernel, op, shapes, traceable))
        torch.library.register_torch_dispatch(f"assay::{name}", FunctionalTensorMode, traced, lib=_LIBRARY)
    gradient = Gradient(kernel, op, outputs, operator)
    torch.library.register_autograd(
        f"assay::{name}", gradient.backward, setup_context=gradient.setup_context, lib=_LIBRARY
    )
    call = getattr(torch.ops.assay, name).default
    return Operator(kernel, op, outputs, Contract(kernel, op), gradient, call, run, differentiable(run, gradient))


def _name(kernel: Kernel, also: tuple[str, ...]) -> str:
    """`gelu__njit__parallel`, `layernorm__triton__with_mean_rstd`; a user's kernel has a hash of its file's name."""
    address = kernel.address
    parts = [address.op, address.backend, *([address.variant] if address.variant else [])]
    if kernel.file is not None and library.ROOT not in kernel.file.parents:
        parts.append(hashlib.sha256(f"{kernel.file}:{kernel.function}".encode()).hexdigest()[:8])
    return "__".join([*parts, *(["with_" + "_".join(also)] if also else [])])
