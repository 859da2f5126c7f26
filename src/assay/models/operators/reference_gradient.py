"""PyTorch's gradient of an op's reference. For a signature that comes again and again it is traced once, as PyTorch's
own compilers do it, on tensors without values; what is left are the few functions that compute the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from assay.models.operators.contract import PLAIN
from assay.models.operators.remembered import Remembered
from assay.op import Op

Named = dict[str, Any]
Functions = Callable[..., list[Any]]
"""From the inputs and the given gradients, in order, to the wanted ones."""


AFTER = 16
"""Calls of one signature, before it is traced: that takes as long as some hundred calls save, and in a training whose
sequences have all lengths most signatures come but a few times."""


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
        names, sources = list(inputs), list(given)  # what is remembered must not hold a tensor

        def direct(*tensors: Any) -> list[Any]:
            mine = dict(zip(names, tensors, strict=False))
            grads = dict(zip(sources, tensors[len(names) :], strict=True))
            return list(evaluated(self._op, mine, attributes, wanted, grads).values())

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
    """Nobody watches or traces: all that a call does is known beforehand."""
    unseen = torch._C._len_torch_dispatch_stack() == 0 and torch._C._functorch.peek_interpreter_stack() is None
    return unseen and all(t is None or t.__class__ in PLAIN for t in tensors)


def traced(function: Functions, tensors: list[Any]) -> Functions | None:
    """The functions of PyTorch's that `function` comes to for tensors of these shapes; None where that depends on
    values, or on a tensor from elsewhere."""
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        with torch.autograd.set_multithreading_enabled(False):  # a tracer sees its own thread only
            graph = make_fx(function, tracing_mode="fake")(*tensors)
    except Exception:  # whatever a reference does that tensors without values cannot
        return None
    if any(node.op == "get_attr" for node in graph.graph.nodes):
        return None
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.detach.default:  # nothing is recorded here
            node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()
    graph.recompile()
    made: Functions = graph.forward
    return made


def evaluated(op: Op, inputs: Named, attributes: Named, wanted: list[str], given: Named) -> Named:
    """The reference is evaluated again and differentiated. Under `create_graph` the inputs keep their history, so that
    the gradient has a gradient."""
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
