"""The gradient of a kernel's operator, by the op's backward kernel or else by PyTorch through the op's reference."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from assay.backends import Level, here
from assay.catalog import library
from assay.catalog.reader import kernels_in, ops_in
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.models.operators.contract import PLAIN, Contract, Remembered
from assay.op import Op, Tensor

Named = dict[str, Any]
Functions = Callable[..., list[Any]]
"""Maps the inputs and the given gradients, in order, to the wanted gradients."""


AFTER = 16
"""Calls of one signature before it is traced. Tracing takes as long as some hundred traced calls save, and if sequences
vary in length, most signatures occur only a few times."""


@dataclass
class Signature:
    calls: int = 0
    functions: Functions | None = None


class ByReference:
    def __init__(self, op: Op) -> None:
        self._op = op
        self._signatures: Remembered[Signature] = Remembered()

    def __call__(self, inputs: Named, attributes: Named, wanted: list[str], given: Named) -> Named:
        tensors = [*inputs.values(), *given.values()]
        names, sources = list(inputs), list(given)  # a cached closure must not hold a tensor

        def direct(*tensors: Any) -> list[Any]:
            named = dict(zip(names, tensors, strict=False))
            grads = dict(zip(sources, tensors[len(names) :], strict=True))
            return list(evaluated(self._op, named, attributes, wanted, grads).values())

        functions: Functions = direct
        if not torch.is_grad_enabled() and _are_plain(tensors):
            shapes = [t if t is None else (t.shape, t.stride(), t.dtype, t.device) for t in tensors]
            signature = self._signatures.of((*wanted, *sources, *attributes.values(), *shapes), Signature)
            signature.calls += 1
            if signature.calls == AFTER:
                signature.functions = traced(direct, tensors)
            functions = signature.functions or direct
        device = given[sources[0]].device.type
        if torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return dict(zip(wanted, functions(*tensors), strict=True))
        return dict(zip(wanted, functions(*tensors), strict=True))


def _are_plain(tensors: list[Any]) -> bool:
    """Return whether these are plain tensors and no dispatch mode or function transform is active."""
    unseen = torch._C._len_torch_dispatch_stack() == 0 and torch._C._functorch.peek_interpreter_stack() is None
    return unseen and all(t is None or t.__class__ in PLAIN for t in tensors)


def traced(function: Functions, tensors: list[Any]) -> Functions | None:
    """Trace the PyTorch operators that `function` calls for tensors of these shapes. Return None if they depend on
    values or on a tensor that is not an argument."""
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        with torch.autograd.set_multithreading_enabled(False):  # a tracer sees only its own thread
            graph = make_fx(function, tracing_mode="fake")(*tensors)
    except Exception:  # the reference does something that tensors without values cannot
        return None
    if any(node.op == "get_attr" for node in graph.graph.nodes):
        return None
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.detach.default:  # no gradient is recorded here
            node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()
    graph.recompile()
    made: Functions = graph.forward
    return made


def evaluated(op: Op, inputs: Named, attributes: Named, wanted: list[str], given: Named) -> Named:
    """Evaluate the reference again and differentiate it. Under `create_graph` the inputs keep their history, so that
    the gradient itself can be differentiated."""
    history = torch.is_grad_enabled()
    device = next(iter(given.values())).device.type
    with torch.enable_grad(), torch.autocast(device, enabled=False):
        fresh: Named = {
            n: t if t is None else t.view_as(t) if history else t.detach().requires_grad_(n in wanted)
            for n, t in inputs.items()
        }
        results = op.reference(*fresh.values(), **attributes)
        named = dict(zip(op.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        grads = torch.autograd.grad(
            [named[n] for n in given],
            [fresh[n] for n in wanted],
            list(given.values()),
            create_graph=history,
            allow_unused=True,
        )
    return dict(zip(wanted, grads, strict=True))


BY_REFERENCE = "PyTorch's, of the reference"


class Backward(Protocol):
    """The part of a backward kernel's operator that a gradient needs."""

    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def contract(self) -> Contract: ...
    @property
    def call(self) -> Any: ...
    def unrecorded(self, *arguments: Any) -> Any: ...


Make = Callable[[Kernel, Op, Sequence[str]], Backward]
_DY = -1
_NOWHERE = -2


class Path(NamedTuple):
    """How saved tensors map to the backward kernel's arguments, and its results to the wanted gradients. It is the same
    for every call that wants these gradients."""

    operator: Backward
    arguments: list[tuple[int, Tensor]]
    """For each argument, its index among the saved tensors, `_DY` or `_NOWHERE`."""
    attributes: list[int]
    gradients: list[int | None]
    """For each input of the forward op, the index of the result that is its gradient."""
    refusals: Remembered[str]


class Gradient:
    """The gradient of one operator. By convention the library's backward ops take `dy`, the forward's inputs, and what
    the forward saves or a formula computes (`Tensor.given`); `out` is the gradient of the first input, `dweight` that
    of `weight`."""

    def __init__(self, kernel: Kernel, op: Op, outputs: tuple[str, ...], make: Make) -> None:
        self.op, self.outputs, self._make = op, outputs, make
        self.kernel_and_op = backward_of(kernel, op)
        self.title = self.kernel_and_op[0].name if self.kernel_and_op else BY_REFERENCE
        self.saved = [n for n in outputs if self.kernel_and_op and n in self.kernel_and_op[1].inputs]
        """Outputs that the backward kernel reads."""
        self._kept = [outputs.index(n) for n in self.saved]
        alone = [n for n in self.saved if op.outputs[n].optional]  # computed only for the backward kernel
        whole = [n for n in outputs if (fixed := op.outputs[n].dtype) and not dtype(fixed).torch.is_floating_point]
        self._apart = [i for i, n in enumerate(outputs) if n in alone or n in whole]
        """Indices of outputs that have no gradient."""
        self._paths: dict[tuple[bool, ...], Path | None] = {}
        self._by_reference = ByReference(op)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        made = output if isinstance(output, tuple) else (output,)
        ctx.save_for_backward(*inputs[: len(self.op.inputs)], *[made[i] for i in self._kept])
        ctx.rest = inputs[len(self.op.inputs) :]
        if self._apart:
            ctx.mark_non_differentiable(*[made[i] for i in self._apart])
        ctx.set_materialize_grads(False)

    def backward(self, ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of every input, and None for arguments that are not tensors."""
        count, tensors, rest = len(self.op.inputs), ctx.saved_tensors, ctx.rest
        given = [i for i, g in enumerate(grads) if g is not None]
        gradients: Sequence[torch.Tensor | None] | None = [None] * count
        if given:
            path = self._path(ctx.needs_input_grad) if given == [0] else None
            gradients = None if path is None else self._by_kernel(path, tensors, rest, grads[0])
        if gradients is None:
            inputs = dict(zip(self.op.inputs, tensors, strict=False))
            attributes = dict(zip(self.op.attributes, rest, strict=False))
            wanted = [n for n, need in zip(inputs, ctx.needs_input_grad, strict=False) if need]
            named = {self.outputs[i]: grads[i] for i in given}
            made = self._by_reference(inputs, attributes, wanted, named)
            gradients = [made.get(n) for n in inputs]
        return (*gradients, *[None] * len(rest))

    def by(self, number: torch.dtype) -> str:
        """Return the name of the gradient that a call in this dtype gets."""
        if self.kernel_and_op and number in self._make(*self.kernel_and_op, ()).contract.dtypes:
            return self.title
        return BY_REFERENCE

    def _path(self, needed: tuple[bool, ...]) -> Path | None:
        """Return the path to these gradients, or None if no kernel computes them."""
        if needed not in self._paths:
            self._paths[needed] = self._derive_path(needed)
        return self._paths[needed]

    def _derive_path(self, needed: tuple[bool, ...]) -> Path | None:
        first, wanted = next(iter(self.op.inputs)), [n for n, need in zip(self.op.inputs, needed, strict=False) if need]
        if self.kernel_and_op is None:
            return None
        kernel, op = self.kernel_and_op
        also = tuple(f"d{n}" for n in wanted if n != first)
        if any(n not in op.outputs for n in also):
            return None
        operator = self._make(kernel, op, also)
        places = {n: i for i, n in enumerate([*self.op.inputs, *self.saved])} | {"dy": _DY}
        named = {n: "out" if n == first else f"d{n}" for n in wanted}
        return Path(
            operator,
            [(places.get(n, _NOWHERE), t) for n, t in op.inputs.items()],
            [list(self.op.attributes).index(n) for n in op.attributes],
            [operator.outputs.index(named[n]) if n in named else None for n in self.op.inputs],
            Remembered(),
        )

    def _by_kernel(
        self, path: Path, tensors: Sequence[torch.Tensor | None], rest: Sequence[Any], dy: torch.Tensor | None
    ) -> list[torch.Tensor | None] | None:
        """Return the gradients, or None if the kernel does not take these tensors."""
        arguments = []
        for place, tensor in path.arguments:
            value = dy if place == _DY else None if place == _NOWHERE else tensors[place]
            if value is None and tensor.given is not None:  # the forward kernel did not save it
                value = self._computed(tensor.given, tensors, rest)
            arguments.append(value if value is None or tensor.strided else value.contiguous())
        values = [rest[i] for i in path.attributes]
        if _refusal(path, arguments, values):
            return None
        operator = path.operator
        made = (operator.call if torch.is_grad_enabled() else operator.unrecorded)(*arguments, *values)
        results = made if isinstance(made, tuple) else (made,)
        return [None if i is None else results[i] for i in path.gradients]

    def _computed(
        self, formula: Callable[..., Any], tensors: Sequence[torch.Tensor | None], rest: Sequence[Any]
    ) -> torch.Tensor:
        known: Named = dict(zip([*self.op.inputs, *self.saved], tensors, strict=True))
        attributes = dict(zip(self.op.attributes, rest, strict=False))
        names = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        result: torch.Tensor = formula(*(attributes[n] if n in attributes else known[n].float() for n in names))
        return result


def _refusal(path: Path, arguments: list[torch.Tensor | None], values: list[Any]) -> str:
    """Return the contract's refusal, cached by signature; under a compiler, whose sizes may be symbolic, it is computed
    for every call."""
    if any(t is not None and t.__class__ not in PLAIN for t in arguments):
        return path.operator.contract.refusal(arguments, values)
    key = (*values, *[t if t is None else (t.shape, t.dtype, t.device) for t in arguments])
    return path.refusals.of(key, lambda: path.operator.contract.refusal(arguments, values))


def backward_of(kernel: Kernel, op: Op) -> tuple[Kernel, Op] | None:
    """Return the kernel in the same language that computes the op's gradient, if one is written and can run here. One
    derived from the reference is not used, since it would only be PyTorch's gradient by a detour."""
    name = f"{op.name}_backward"
    home = pathlib.Path(op.source)
    files = {f for f in (kernel.file, home) if f is not None and library.ROOT not in f.parents and f.suffix == ".py"}
    # The library's backward op belongs to the library's op; a user's op may have the same name.
    ops, candidates = ({}, []) if home in files else (dict(library.ops()), list(library.kernels()))
    for file in files:
        ops |= ops_in(file)
        candidates = kernels_in(file) + candidates
    address = kernel.address
    fitting = [
        k
        for k in candidates
        if k.address.op == name
        and k.address.backend == address.backend
        and k.file is not None
        and k.address.variant in ("", address.variant)
        and here(k).level in (Level.RUN, Level.INTERPRET)
    ]
    if name not in ops or not fitting:
        return None
    return max(fitting, key=lambda k: k.address.variant == address.variant), ops[name]
