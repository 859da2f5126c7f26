"""A kernel as a PyTorch operator, `torch.ops.assay.gelu__triton`: functional, with a fake implementation and a
gradient.

Registered with `Library.define`, not `custom_op`: with each call the latter looks whether an output aliases an input,
which here none ever does (opcheck says so of every kernel, in the tests). Triton's kernels are operators like the
others, whose launches a compiler sees (`inlined`)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.autograd import profiler

from assay.backends import Backend, backend
from assay.catalog import library
from assay.dtype import dtype
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.models.operators.contract import Contract, Sizes
from assay.models.operators.gradient import Gradient
from assay.models.operators.inlined import launches_are_seen, rule, traceable
from assay.models.operators.tuned import TunedCalls
from assay.op import Op
from assay.worker import load


class Shapes:
    def __init__(self, op: Op, outputs: tuple[str, ...]) -> None:
        self.op, self.count = op, len(op.inputs)
        inputs = list(op.inputs.values())
        self.carrier = next((i for i, t in enumerate(inputs) if t.dtype is None and not t.optional), None)
        """The input whose dtype is the workload's."""
        self.places: dict[str, tuple[int, int]] = {}
        for i, tensor in enumerate(inputs):
            for j, dim in enumerate(tensor.shape):
                if isinstance(dim, str) and dim in op.axes and not tensor.optional:
                    self.places.setdefault(dim, (i, j))
        if hidden := sorted(set(op.axes) - set(self.places)):
            raise UsageError(f"{op.name}: no input tells its axis '{hidden[0]}'", fix="such an op cannot be swapped in")
        self.made = [
            (n, op.outputs[n].shape, dtype(fixed).torch if (fixed := op.outputs[n].dtype) else None) for n in outputs
        ]
        known = all(isinstance(d, int) or d in self.places for _, shape, _ in self.made for d in shape)
        self.read = [[d if isinstance(d, int) else self.places[d] for d in shape] for _, shape, _ in self.made if known]
        """For each output, where in the arguments each of its sizes is; empty if one must be computed."""
        self.twin = all(fixed is None and shape == inputs[self.carrier or 0].shape for _, shape, fixed in self.made)
        """Every output is like the first input that carries the dtype."""

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Axes and attributes by name."""
        sizes = {axis: arguments[i].shape[j] for axis, (i, j) in self.places.items()}
        sizes.update(zip(self.op.attributes, arguments[self.count :], strict=False))
        return sizes

    def number(self, arguments: tuple[Any, ...]) -> torch.dtype:
        """The workload's dtype."""
        value: torch.dtype = arguments[-1] if self.carrier is None else arguments[self.carrier].dtype
        return value

    def extent(self, shape: Sequence[str | int], sizes: dict[str, Any]) -> list[Any]:
        derived: dict[str, Any] = dict(self.op.derived)
        return [d if isinstance(d, int) else derived[d](Sizes(sizes)) if d in derived else sizes[d] for d in shape]

    def empty(self, arguments: tuple[Any, ...]) -> dict[str, torch.Tensor]:
        """The outputs, allocated."""
        if self.twin and self.carrier is not None:
            like = arguments[self.carrier]
            return {n: torch.empty_like(like, memory_format=torch.contiguous_format) for n, _, _ in self.made}
        number, first = self.number(arguments), arguments[0]
        if self.read:  # quicker than by their names
            extents = [[d if isinstance(d, int) else arguments[d[0]].shape[d[1]] for d in read] for read in self.read]
        else:
            sizes = self.named(arguments)
            extents = [self.extent(shape, sizes) for _, shape, _ in self.made]
        return {
            n: first.new_empty(extent, dtype=fixed or number)
            for (n, _, fixed), extent in zip(self.made, extents, strict=True)
        }


Function = Callable[..., Any]


def implementation(
    kernel: Kernel,
    op: Op,
    shapes: Shapes,
    prepared: Callable[[Function], Function] = lambda function: function,
    tuned: TunedCalls | None = None,
) -> Function:
    """Outputs and work space are allocated, the kernel is called on the current stream: nothing else per call.
    `prepared`: what becomes of its function first. `tuned`: gives the values of its tunables."""
    language = backend(kernel.address.backend)
    shares_memory = language.name in ("cupy", "numba")
    follows_torch = type(language).on_current_stream is Backend.on_current_stream
    rows_apart = [t.strided for t in op.inputs.values()]
    written = kernel.file is not None and not kernel.launches
    wanted = [(i, n) for i, n in enumerate(op.attributes, shapes.count) if not written or n in kernel.asks]
    loaded: dict[torch.dtype, Function] = {}

    def run(*arguments: Any) -> Any:
        number = shapes.number(arguments)
        function = loaded.get(number)
        if function is None:
            function = loaded[number] = prepared(load.function(kernel, op, dtype(number)))
        made = {} if kernel.returns else shapes.empty(arguments)
        named: dict[str, Any] = {n: arguments[i] for i, n in wanted} | made
        if kernel.scratch or kernel.launches:
            named |= _rest(kernel, op, shapes, arguments)
        if tuned is not None:
            named |= tuned(arguments, number)
        # A compiler may hand over other strides than the operator was traced with.
        tensors = [
            t if t is None or t.is_contiguous() or (apart and t.stride(-1) == 1) else t.contiguous()
            for t, apart in zip(arguments, rows_apart, strict=False)
        ]
        if shares_memory:  # CuPy and Numba refuse the memory of a tensor that records gradients
            tensors = [t if t is None or not t.requires_grad else t.detach() for t in tensors]
        around = _surroundings(tensors[0])
        if around is None and follows_torch:
            returned = function(*tensors, **named)
        else:
            with around or nullcontext(), language.on_current_stream():
                returned = function(*tensors, **named)
        if kernel.returns:
            return returned
        return tuple(made.values()) if len(made) > 1 else next(iter(made.values()))

    return run


def fake(shapes: Shapes) -> Function:
    """Outputs of the right sizes, for a tracer."""

    def made(*arguments: Any) -> Any:
        outputs = tuple(shapes.empty(arguments).values())
        return outputs if len(outputs) > 1 else outputs[0]

    return made


def differentiable(run: Function, gradient: Gradient) -> Function:
    class Recorded(torch.autograd.Function):
        """As torch.library makes one. `setup_context` as a method of its own would bind a signature with each call."""

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            made = run(*arguments)
            gradient.setup_context(ctx, arguments, made)
            return made

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
            return gradient.backward(ctx, *grads)

    made: Function = Recorded.apply
    return made


def _rest(kernel: Kernel, op: Op, shapes: Shapes, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Work space, and what a launch comment may name."""
    sizes = shapes.named(arguments)
    named: dict[str, Any] = {
        name: arguments[0].new_empty(shapes.extent(dims, sizes), dtype=dtype(kind).torch)
        for name, (kind, *dims) in kernel.scratch.items()
    }
    if kernel.launches:
        named |= sizes | {n: shapes.extent([n], sizes)[0] for n in op.derived}
        named |= {n: None for n, t in op.outputs.items() if t.optional}
    return named


def _surroundings(tensor: torch.Tensor) -> ExitStack | None:
    """The tensor's device made current, and autocast off: the swap has cast already, and a kernel in PyTorch must not
    be cast once more. Nearly always there is nothing to do."""
    elsewhere = tensor.is_cuda and tensor.get_device() != torch.cuda.current_device()
    autocast = torch.is_autocast_enabled(tensor.device.type)
    if not elsewhere and not autocast:
        return None
    stack = ExitStack()
    if elsewhere:
        stack.enter_context(torch.cuda.device(tensor.device))
    if autocast:
        stack.enter_context(torch.autocast(tensor.device.type, enabled=False))
    return stack


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
    tuned: TunedCalls | None = None
    """The values of its tunables, where tuned ones were asked for."""

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
    """Whether a profiler, a compiler or a dispatch mode must see the operator; else the dispatcher only costs time."""
    return torch.compiler.is_compiling() or profiler._is_profiler_enabled or torch._C._len_torch_dispatch_stack() > 0


def operator(kernel: Kernel, op: Op, also: Sequence[str] = (), tuned: bool = False) -> Operator:
    """The kernel's operator, registered once in a process. `also`: optional outputs to be given back too. `tuned`: with
    the values that `assay tune` chose for the shape of each call; they are read once in a process."""
    tuned = tuned and bool(kernel.tune)
    key = (kernel.address, kernel.home, kernel.function, tuple(also), tuned)
    with _lock:
        if key not in _registered:
            _registered[key] = _register(kernel, op, tuple(also), tuned)
        return _registered[key]


def registered() -> list[Operator]:
    """Every operator of this process so far."""
    return list(_registered.values())


def for_training(plain: Operator) -> Operator:
    """The operator of the same kernel that also returns what its backward kernel reads; `plain` itself where that is
    nothing, or the kernel cannot return it."""
    if plain.gradient.kernel_and_op is None:
        return plain
    kernel, op, read = plain.kernel, plain.op, plain.gradient.kernel_and_op[1].inputs
    saved = [n for n, t in op.outputs.items() if t.optional and n in read]
    if kernel.file is not None and not {*saved} <= {*kernel.parameters}:
        return plain
    return operator(kernel, op, saved, plain.tuned is not None)


def _register(kernel: Kernel, op: Op, also: tuple[str, ...], tuned: bool) -> Operator:
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
    name = _name(kernel, also) + ("__tuned" if tuned else "")
    values = TunedCalls(kernel, op, shapes.named) if tuned else None
    _LIBRARY.define(f"{name}({schema}) -> {returns if len(outputs) == 1 else f'({returns})'}", tags=_TAGS)
    run = implementation(kernel, op, shapes, tuned=values)
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"assay::{name}", fake(shapes), lib=_LIBRARY)
    if launches_are_seen(kernel):
        traced = rule(implementation(kernel, op, shapes, traceable, values))
        torch.library.register_torch_dispatch(f"assay::{name}", FunctionalTensorMode, traced, lib=_LIBRARY)
    gradient = Gradient(kernel, op, outputs, partial(operator, tuned=True) if tuned else operator)
    torch.library.register_autograd(
        f"assay::{name}", gradient.backward, setup_context=gradient.setup_context, lib=_LIBRARY
    )
    call = getattr(torch.ops.assay, name).default
    recorded = differentiable(run, gradient)
    return Operator(kernel, op, outputs, Contract(kernel, op), gradient, call, run, recorded, values)


def _name(kernel: Kernel, also: tuple[str, ...]) -> str:
    """`gelu__njit__parallel`, `layernorm__triton__with_mean_rstd`; a user's kernel has a hash of its file's name."""
    address = kernel.address
    parts = [address.op, address.backend, *([address.variant] if address.variant else [])]
    if kernel.home is not None and library.ROOT not in kernel.home.parents:
        parts.append(hashlib.sha256(f"{kernel.home}:{kernel.function}".encode()).hexdigest()[:8])
    return "__".join([*parts, *(["with_" + "_".join(also)] if also else [])])
