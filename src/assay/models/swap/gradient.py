"""The gradient of a kernel's operator: by the op's backward kernel, else by PyTorch through the op's reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from assay import library
from assay.backends import Level, here
from assay.kernel import Kernel
from assay.library.reader import kernels_in, ops_in
from assay.models.swap.contract import PLAIN
from assay.models.swap.reference import ByReference, Named
from assay.models.swap.remembered import Remembered
from assay.op import Op

if TYPE_CHECKING:
    from assay.models.swap.operator import Operator

BY_REFERENCE = "PyTorch's, of the reference"
Make = Callable[[Kernel, Op, Sequence[str]], "Operator"]


class Gradient:
    """The convention of the library's backward ops: they take `dy`, the forward's inputs, and what the forward can save
    or a formula gives (`Tensor.given`); `out` is the gradient of the first input, `dweight` that of `weight`."""

    def __init__(self, kernel: Kernel, op: Op, outputs: tuple[str, ...], make: Make) -> None:
        self.op, self.outputs, self._make = op, outputs, make
        self.found = backward_of(kernel, op)
        self.title = self.found[0].name if self.found else BY_REFERENCE
        self.saved = [n for n in outputs if self.found and n in self.found[1].inputs]
        """Outputs that the backward kernel reads."""
        self._refusals: Remembered[str] = Remembered()
        self._by_reference = ByReference(op)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        made = dict(zip(self.outputs, output if isinstance(output, tuple) else (output,), strict=True))
        ctx.save_for_backward(*inputs[: len(self.op.inputs)], *(made[n] for n in self.saved))
        ctx.rest = inputs[len(self.op.inputs) :]
        alone = [n for n in self.saved if self.op.outputs[n].optional]  # there for the backward kernel alone
        ctx.mark_non_differentiable(*(t for n, t in made.items() if n in alone or not t.is_floating_point()))
        ctx.set_materialize_grads(False)

    def backward(self, ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Of every input; None for what is no tensor."""
        count = len(self.op.inputs)
        inputs = dict(zip(self.op.inputs, ctx.saved_tensors[:count], strict=True))
        saved = dict(zip(self.saved, ctx.saved_tensors[count:], strict=True))
        attributes = dict(zip(self.op.attributes, ctx.rest, strict=False))
        wanted = [n for n, need in zip(inputs, ctx.needs_input_grad, strict=False) if need]
        given = {n: g for n, g in zip(self.outputs, grads, strict=True) if g is not None}
        found: Named = {}
        if given:
            made = self._by_kernel(inputs | saved, attributes, wanted, given)
            found = self._by_reference(inputs, attributes, wanted, given) if made is None else made
        return (*(found.get(n) for n in inputs), *(None for _ in ctx.rest))

    def by(self, number: torch.dtype) -> str:
        """Which gradient a call in this dtype gets."""
        if self.found and number in self._make(*self.found, ()).contract.dtypes:
            return self.title
        return BY_REFERENCE

    def _by_kernel(self, known: Named, attributes: Named, wanted: list[str], given: Named) -> Named | None:
        """None: the kernel does not take these tensors, or does not give what is wanted."""
        first, result = next(iter(self.op.inputs)), self.outputs[0]
        if self.found is None or set(given) != {result}:
            return None
        kernel, op = self.found
        also = tuple(f"d{n}" for n in wanted if n != first)
        if any(n not in op.outputs for n in also):
            return None
        operator = self._make(kernel, op, also)
        arguments = []
        for name, tensor in op.inputs.items():
            value = given[result] if name == "dy" else known.get(name)
            if value is None and tensor.given is not None:  # the forward kernel did not save it
                value = _computed(tensor.given, known, attributes)
            arguments.append(value if value is None or tensor.strided else value.contiguous())
        values = [attributes[n] for n in op.attributes]
        if self._refusal(operator, arguments, values):
            return None
        made = (operator.call if torch.is_grad_enabled() else operator.unrecorded)(*arguments, *values)
        results = dict(zip(operator.outputs, made if isinstance(made, tuple) else (made,), strict=True))
        return {n: results["out" if n == first else f"d{n}"] for n in wanted}

    def _refusal(self, operator: Operator, arguments: list[torch.Tensor | None], values: list[Any]) -> str:
        """The contract's, asked once for each signature; with every call of a compiler, whose sizes may be symbols."""
        if any(t is not None and t.__class__ not in PLAIN for t in arguments):
            return operator.contract.refusal(arguments, values)
        key = (operator.name, *values, *[t if t is None else (t.shape, t.dtype, t.device) for t in arguments])
        return self._refusals.of(key, lambda: operator.contract.refusal(arguments, values))


def _computed(formula: Callable[..., Any], known: Named, attributes: Named) -> torch.Tensor:
    names = formula.__code__.co_varnames[: formula.__code__.co_argcount]
    result: torch.Tensor = formula(*(attributes[n] if n in attributes else known[n].float() for n in names))
    return result


def backward_of(kernel: Kernel, op: Op) -> tuple[Kernel, Op] | None:
    """The kernel of the same language, written and able to run here, that computes the op's gradient. (One derived from
    the reference would be PyTorch's gradient by a detour.)"""
    name = f"{op.name}_backward"
    ops, candidates = dict(library.ops()), list(library.kernels())
    if kernel.file is not None and library.ROOT not in kernel.file.parents and kernel.file.suffix == ".py":
        ops |= ops_in(kernel.file)
        candidates = kernels_in(kernel.file) + candidates
    mine = kernel.address
    fitting = [
        k for k in candidates
        if k.address.op == name and k.address.backend == mine.backend and k.file is not None
        and k.address.variant in ("", mine.variant) and here(k).level in (Level.RUN, Level.INTERPRET)
    ]  # fmt: skip
    if name not in ops or not fitting:
        return None
    return max(fitting, key=lambda k: k.address.variant == mine.variant), ops[name]
