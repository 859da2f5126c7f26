"""What a kernel accepts (dtypes, devices, shapes) as plain data, which is fast to check and torch.compile can trace."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch.autograd import forward_ad

from assay.backends import here
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.op import Op

Decision = TypeVar("Decision")
MOST = 4096
"""Maximum number of cached signatures, so that sequences of many different lengths do not fill the memory."""


class Remembered(Generic[Decision]):
    def __init__(self) -> None:
        self._decisions: dict[Hashable, Decision] = {}

    def of(self, signature: Hashable, decide: Callable[[], Decision]) -> Decision:
        decision = self._decisions.get(signature)
        if decision is None:
            if len(self._decisions) >= MOST:
                self._decisions.clear()
            decision = self._decisions[signature] = decide()
        return decision


PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
"""The tensor types that a kernel accepts. A subclass may hold other data, or none."""


class Sizes:
    """Axes and attributes by name, as an op's own functions expect from a workload; sizes may be symbolic."""

    def __init__(self, named: dict[str, Any]) -> None:
        self.named = named

    def __getattr__(self, name: str) -> Any:
        return self.named[name]


class Contract:
    def __init__(self, kernel: Kernel, op: Op) -> None:
        narrowed = op.narrowed(kernel.requires, kernel.most)
        self.kernel = kernel.name
        self.dtypes = tuple(dtype(d).torch for d in (kernel.dtypes or op.dtypes))
        self.devices = devices(kernel)
        self.inputs = [
            (name, t.optional, dtype(t.dtype).torch if t.dtype else None, tuple(t.shape))
            for name, t in narrowed.inputs.items()
        ]
        self.attributes = tuple(op.attributes)
        self.limits = {name: (axis.min, axis.max) for name, axis in narrowed.axes.items()}
        self.derived = dict(op.derived)
        self.require = op.require

    def refusal(self, tensors: Sequence[torch.Tensor | None], attributes: Sequence[float | int]) -> str:
        """Return why the kernel cannot take these tensors, in the op's own shapes; empty if it can."""
        first = next(t for t in tensors if t is not None)
        if first.device.type not in self.devices:
            return f"{self.kernel} runs on {' or '.join(self.devices)}, the input is on {first.device.type}"
        number: torch.dtype | None = None
        sizes: dict[str, Any] = dict(zip(self.attributes, attributes, strict=True))
        for (name, optional, fixed, dims), tensor in zip(self.inputs, tensors, strict=True):
            if tensor is None:
                if not optional:
                    return f"{self.kernel} needs {name}"
                continue
            if tensor.device != first.device:
                return f"{name} is on {tensor.device}, the input on {first.device}"
            if fixed is None and number is None:
                number = tensor.dtype
                if number not in self.dtypes:
                    return f"{self.kernel} does not take {_short(number)}"
            if tensor.dtype != (fixed or number):
                return f"{name} is {_short(tensor.dtype)} where the input is {_short(first.dtype)}"
            if tensor.dim() != len(dims):
                return f"{name} has {tensor.dim()} dimensions, not {len(dims)}"
            for size, dim in zip(tensor.shape, dims, strict=True):
                if isinstance(dim, str) and dim in self.limits and dim not in sizes:
                    sizes[dim] = size
        return self._sizes_refusal(tensors, sizes)

    def _sizes_refusal(self, tensors: Sequence[torch.Tensor | None], sizes: dict[str, Any]) -> str:
        for (name, _, _, dims), tensor in zip(self.inputs, tensors, strict=True):
            if tensor is not None:
                for size, dim in zip(tensor.shape, dims, strict=True):
                    if size != self.size(dim, sizes):
                        return f"{name} has {size} {dim}, not {self.size(dim, sizes)}"
        for name, (least, most) in self.limits.items():
            if name in sizes and not least <= sizes[name] <= most:
                return f"{self.kernel} takes {name} from {least} to {most}, not {sizes[name]}"
        if self.require is not None and not self.require(Sizes(sizes)):
            return "these sizes are outside the op's contract"
        return ""

    def size(self, dim: str | int, sizes: dict[str, Any]) -> Any:
        if isinstance(dim, int):
            return dim
        return sizes[dim] if dim in sizes else self.derived[dim](Sizes(sizes))


def devices(kernel: Kernel) -> tuple[str, ...]:
    """Return the device types on which the kernel's tensors may be."""
    if kernel.address.backend in ("torch", "inductor"):
        return ("cpu", "cuda")
    return (here(kernel).device,)


def transformed() -> str:
    """Return the active function transform or tracer, which sees through PyTorch's operators but not through kernels;
    empty if none is active."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "inside a torch.func transform"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    if torch.jit.is_tracing():
        return "torch.jit.trace"
    return ""


def _short(what: Any) -> str:
    return str(what).removeprefix("torch.")


_numbers = itertools.count()
_tallies: weakref.WeakValueDictionary[int, Tally] = weakref.WeakValueDictionary()


class Tally:
    """Counts the calls of one site. Compiled code refers to it by number, since a function called during tracing takes
    only constants. Calls inside compiled graphs are not counted, since counting would break the graph; traces are."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.calls, self.traced, self.copied, self.fallbacks = 0, 0, 0, Counter[str]()
        _tallies[self.number] = self

    def call(self) -> None:
        """Count a call of the kernel."""
        if torch.compiler.is_compiling():
            _count_traced(self.number, "")
        else:
            self.calls += 1

    def fall_back(self, reason: str) -> None:
        """Count a call that does not use the kernel, with the reason."""
        if torch.compiler.is_compiling():
            _count_traced(self.number, reason)
        else:
            self.fallbacks[reason] += 1

    @property
    def seen(self) -> bool:
        return bool(self.calls or self.traced or self.fallbacks)


@torch.compiler.assume_constant_result
def _count_traced(number: int, reason: str) -> bool:
    tally = _tallies.get(number)
    if tally is not None and reason:
        tally.fallbacks[f"{reason} (in a compiled graph, counted once)"] += 1
    elif tally is not None:
        tally.traced += 1
    return True
