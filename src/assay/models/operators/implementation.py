"""What an operator runs: its kernel, on outputs and work space that are allocated for the call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any

import torch

from assay.backends import Backend, backend
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.models.operators.gradient import Gradient
from assay.models.operators.shapes import Shapes
from assay.op import Op
from assay.worker import load

Function = Callable[..., Any]


def implementation(
    kernel: Kernel, op: Op, shapes: Shapes, prepared: Callable[[Function], Function] = lambda function: function
) -> Function:
    """Outputs and work space are allocated, the kernel is called on the current stream: nothing else per call.
    `prepared`: what becomes of its function first."""
    language = backend(kernel.address.backend)
    shares_memory = language.name in ("cupy", "numba")
    follows_torch = type(language).on_current_stream is Backend.on_current_stream
    rows_apart = [t.strided for t in op.inputs.values()]
    written = kernel.file is not None and not kernel.launches
    wanted = [(i, n) for i, n in enumerate(op.attributes, shapes.count) if not written or n in kernel.parameters]
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
    """Outputs of the right sizes, for whoever traces."""

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
