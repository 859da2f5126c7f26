"""The cost per call of PyTorch's layers between a model and a kernel."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay import inputs
from assay.backends import backend
from assay.dtype import dtype
from assay.errors import AssayError
from assay.models.measure import Arm, Clock, WaitedClock, in_turn
from assay.models.operators.choice import choose
from assay.models.operators.contract import Tally
from assay.models.operators.operator import Operator, operator
from assay.models.swap import replacement
from assay.models.swap.report import Entry
from assay.models.swap.substitute import Substitute
from assay.models.swap.verb import swap
from assay.swappable import Call, Tensors
from assay.worker import load
from assay.worker.stopwatch import HostClock
from assay.workload import Workload


@dataclass(frozen=True)
class BoundaryCost:
    """Seconds of one call launched from Python, in several ways: medians over rounds in which they take turns. On a
    small enough workload, the differences between them are the cost of each boundary."""

    kernel: str
    workload: str
    device: str
    direct: float
    """Allocate outputs and call the kernel, as a hand-written function would."""
    operator: float
    """Through torch.library, without a gradient."""
    autograd: float
    """Through torch.library, recorded for a gradient."""
    site: float
    """As in a swapped module: look up the decision, bring tensors into the op's shape and back."""
    training: float
    """The same, recorded for a gradient."""
    gradient: float | None
    """That gradient, of all inputs, through autograd. Together with `training` it is the time that a training step
    spends at a site. None if there is no gradient."""
    samples: dict[str, list[list[float]]]
    """Way → round → seconds."""


@torch.enable_grad()  # in any mode of the caller, since three of the ways record gradients
def boundary_cost(kernel: str, workload: str = "", *, device: str = "", budget: float = 1.0) -> BoundaryCost:
    """Time one kernel in six ways. Without a workload all axes are 16, or as close to it as the op allows."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    chosen = choose(kernel, "", device, kernel)
    plain = operator(*chosen)
    op = plain.op
    sizes = ",".join(f"{n}={min(max(16, a.min), a.max)}" for n, a in op.axes.items())
    point = Workload.of(op, workload or sizes)
    drawn = {n: t.to(device) for n, t in inputs.generate(point).items()}
    tensors = tuple(drawn.get(n) for n in op.inputs)
    attributes = tuple(value for _, value in point.attributes)
    call = Call(op.name, tensors, attributes, drawn[next(iter(op.inputs))].shape[-1])
    recorded = [t if t is None else t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
    site = _packed(kernel, tensors) if replacement.find(op.name) else _swapped(plain, call)
    arms = [
        Arm("direct", _direct(plain, tensors, dict(point.attributes))),
        Arm("operator", lambda: plain.call(*tensors, *attributes)),
        Arm("autograd", lambda: plain.call(*recorded, *attributes)),
        Arm("site", lambda: site(tensors)),
        Arm("training", lambda: site(tuple(recorded))),
    ]
    if gradient := _gradient(site(tuple(recorded)), recorded):
        arms.append(Arm("gradient", gradient))
    for arm in arms:
        for _ in range(3):
            arm.call()
    clock: Clock = WaitedClock() if device == "cuda" else HostClock()
    samples = in_turn(arms, clock, rounds=20, budget=budget / len(arms)).samples
    medians = {name: statistics.median(s for r in rounds for s in r) for name, rounds in samples.items()}
    taken = medians.pop("gradient", None)
    return BoundaryCost(plain.kernel.name, str(point), device, **medians, gradient=taken, samples=samples)


def _gradient(made: Any, inputs: Sequence[torch.Tensor | None]) -> Callable[[], Any] | None:
    outputs = [t for t in (made if isinstance(made, tuple) else (made,)) if t.requires_grad]
    leaves, upstream = [t for t in inputs if t is not None and t.requires_grad], [torch.ones_like(t) for t in outputs]
    if not outputs:
        return None
    return lambda: torch.autograd.grad(outputs, leaves, upstream, retain_graph=True, allow_unused=True)


def _swapped(plain: Operator, call: Call) -> Callable[[Tensors], Any]:
    substitute = Substitute(plain, Entry("", plain.op.name, "module", tally=Tally()))
    if substitute.attempt(call) is None:
        reason = next(iter(substitute.tally.fallbacks))
        raise AssayError(f"no site can call {plain.kernel.name} so: {reason}", fix="name another workload")
    return lambda tensors: substitute.attempt(call._replace(tensors=tensors))


def _packed(kernel: str, tensors: Tensors) -> Callable[[Tensors], Any]:
    """Return a call of a packed linear layer, whose time does not depend on its weights."""
    x, elements, _, bias = tensors
    assert x is not None and elements is not None
    model = nn.Sequential(nn.Linear(x.shape[1], elements.shape[0], bias is not None, x.device, x.dtype))
    model.requires_grad_(False)
    swap(model, {"linear": kernel})
    return lambda tensors: model[0](tensors[0])


def _direct(plain: Operator, tensors: tuple[torch.Tensor | None, ...], attributes: dict[str, Any]) -> Callable[[], Any]:
    kernel, op = plain.kernel, plain.op
    result = plain.call(*tensors, *attributes.values())
    outputs = dict(zip(plain.outputs, result if isinstance(result, tuple) else (result,), strict=True))
    function = load.function(kernel, op, dtype(next(t for t in tensors if t is not None).dtype))
    scratch, language = _scratch(plain, tensors), backend(kernel.address.backend)

    def direct() -> Any:
        made = {} if kernel.returns else {n: torch.empty_like(t) for n, t in outputs.items()}
        work = {n: torch.empty_like(t) for n, t in scratch.items()}
        with language.on_current_stream():
            return function(*tensors, **load.keywords(kernel, op, attributes | made | work))

    return direct


def _scratch(plain: Operator, tensors: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    sizes = {
        d: n
        for t, i in zip(tensors, plain.op.inputs.values(), strict=True)
        if t is not None
        for d, n in zip(i.shape, t.shape, strict=True)
    }
    first = next(t for t in tensors if t is not None)
    return {
        name: first.new_empty([d if isinstance(d, int) else sizes[d] for d in dims], dtype=dtype(kind).torch)
        for name, (kind, *dims) in plain.kernel.scratch.items()
    }
