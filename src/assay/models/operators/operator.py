"""A kernel as a PyTorch operator, `torch.ops.assay.gelu__triton`: functional, with a fake implementation and a
gradient.

It is registered with `Library.define` instead of `custom_op`, which checks at every call whether an output aliases an
input; here none ever does (the tests run opcheck on every kernel). Triton kernels are operators like the others, except
that a compiler sees their launches (`inlined`)."""

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
        """Index of the input whose dtype is the workload's."""
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
        """For each output, the place of each of its sizes in the arguments; empty if a size must be computed."""
        self.twin = all(fixed is None and shape == inputs[self.carrier or 0].shape for _, shape, fixed in self.made)
        """Whether every output has the shape and dtype of the first input that carries the dtype."""

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Return axes and attributes by name."""
        sizes = {axis: arguments[i].shape[j] for axis, (i, j) in self.places.items()}
        sizes.update(zip(self.op.attributes, arguments[self.count :], strict=False))
        return sizes

    def number(self, arguments: tuple[Any, ...]) -> torch.dtype:
        """Return the workload's dtype."""
        value: torch.dtype = arguments[-1] if self.carrier is None else arguments[self.carrier].dtype
        return value

    def extent(self, shape: Sequence[str | int], sizes: dict[str, Any]) -> list[Any]:
        derived: dict[str, Any] = dict(self.op.derived)
        return [d if isinstance(d, int) else derived[d](Sizes(sizes)) if d in derived else sizes[d] for d in shape]

    def empty(self, arguments: tuple[Any, ...]) -> dict[str, torch.Tensor]:
        """Allocate the outputs."""
        if self.twin and self.carrier is not None:
            like = arguments[self.carrier]
            return {n: torch.empty_like(like, memory_format=torch.contiguous_format) for n, _, _ in self.made}
        number, first = self.number(arguments), arguments[0]
        if self.read:  # faster than by name
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
    """Return the operator's implementation. A call allocates outputs and work space and calls the kernel on the current
    stream, nothing else. `prepared`: applied to the kernel's function first. `tuned`: gives its tunables' values."""
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
        # A compiler may pass other strides than those the operator was traced with.
        tensors = [
            t if t is None or t.is_contiguous() or (apart and t.stride(-1) == 1) else t.contiguous()
            for t, apart in zip(arguments, rows_apart, strict=False)
        ]
        if shares_memory:  # CuPy and Numba refuse tensors that require gradients
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
    """Return an implementation that only allocates outputs of the right sizes, for a tracer."""

    def made(*arguments: Any) -> Any:
        outputs = tuple(shapes.empty(arguments).values())
        return outputs if len(outputs) > 1 else outputs[0]

    return made


def differentiable(run: Function, gradient: Gradient) -> Function:
    class Recorded(torch.autograd.Function):
        """As torch.library defines it. `setup_context` as a separate method would bind a signature at every call."""

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
    """Return work space, and all names that a launch comment may use."""
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
    """Return a context that makes the tensor's device current and turns autocast off (the swap has cast already, and a
    kernel in PyTorch must not be cast again), or None if there is nothing to do, which is nearly always so."""
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
    """Names of the returned outputs, in order."""
    contract: Contract
    gradient: Gradient
    call: Any
    """`call(*inputs, *attributes)`, followed by the dtype if no input determines it; returns a tensor or a tuple."""
    run: Callable[..., Any]
    """The operator's implementation without PyTorch's dispatcher, for calls that nothing observes."""
    differentiable: Callable[..., Any]
    """The same with the operator's gradient."""
    tuned: TunedCalls | None = None
    """The values of its tunables, if tuned ones were requested."""

    @property
    def name(self) -> str:
        return str(self.call.name())

    def unrecorded(self, *arguments: Any) -> Any:
        """Call the operator without recording a gradient."""
        return (self.call if _watched() else self.run)(*arguments)

    def recorded(self, *arguments: Any) -> Any:
        """Call the operator and record the call for a gradient."""
        return (self.call if _watched() else self.differentiable)(*arguments)


def _watched() -> bool:
    """Return whether a profiler, a compiler or a dispatch mode must see the operator. If not, the dispatcher only costs
    time."""
    return torch.compiler.is_compiling() or profiler._is_profiler_enabled or torch._C._len_torch_dispatch_stack() > 0


def operator(kernel: Kernel, op: Op, also: Sequence[str] = (), tuned: bool = False) -> Operator:
    """Return the kernel's operator, registered once per process. `also`: optional outputs to return, too. `tuned`: use
    the values that `assay tune` chose for the shape of each call; they are read once per process."""
    tuned = tuned and bool(kernel.tune)
    key = (kernel.address, kernel.home, kernel.function, tuple(also), tuned)
    with _lock:
        if key not in _registered:
            _registered[key] = _register(kernel, op, tuple(also), tuned)
        return _registered[key]


def registered() -> list[Operator]:
    """Return all operators registered in this process."""
    return list(_registered.values())


def for_training(plain: Operator) -> Operator:
    """Return the operator of the same kernel that also returns what its backward kernel reads; `plain` itself if that
    is nothing, or if the kernel cannot return it."""
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
    """Return the name: `gelu__njit__parallel`, `layernorm__triton__with_mean_rstd`. A user's kernel has a hash of its
    file and function in it."""
    address = kernel.address
    parts = [address.op, address.backend, *([address.variant] if address.variant else [])]
    if kernel.home is not None and library.ROOT not in kernel.home.parents:
        parts.append(hashlib.sha256(f"{kernel.home}:{kernel.function}".encode()).hexdigest()[:8])
    return "__".join([*parts, *(["with_" + "_".join(also)] if also else [])])
