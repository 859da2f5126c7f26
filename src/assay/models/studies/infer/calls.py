"""Every call of a kernel in one forward pass: its place in the model, the kernel and the workload. A dispatch mode
records them, which sees modules' sites, functional calls, fused pairs and replaced modules alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode

from assay.dtype import dtype
from assay.models.operators.operator import Operator, registered
from assay.models.studies.infer.evidence import Called
from assay.models.swap.report import Report, Site, State
from assay.workload import Workload


@contextmanager
def watched(model: nn.Module, enter: Callable[[str], None], leave: Callable[[str, Any], None]) -> Iterator[None]:
    """Call `enter(path)` and `leave(path, output)` around every module's forward while open. A module used in several
    places has the first of its paths; the model itself has the path ''. The hooks are global, not on modules, so that
    they do not change the model's behaviour: a hook on a module would split a fused pair."""
    paths = {module: path for path, module in model.named_modules()}

    def before(module: nn.Module, inputs: Any) -> None:
        if module in paths:
            enter(paths[module])

    def after(module: nn.Module, inputs: Any, output: Any) -> None:
        if module in paths:
            leave(paths[module], output)

    handles = [
        hooks.register_module_forward_pre_hook(before),
        hooks.register_module_forward_hook(after, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Seen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.at: list[str] = []
        self.known = {o.name: o for o in registered()}
        self.calls: Counter[tuple[str, str, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kernel = self.known.get(func.name()) if func.namespace == "assay" else None
        if kernel is not None:
            self.calls[self.at[-1] if self.at else "", kernel.name, str(workload(kernel, args))] += 1
        return func(*args, **(kwargs or {}))


def calls(model: nn.Module, call: Callable[[], Any], report: Report) -> list[Called]:
    """Return the sites called in one pass, in the order of their first calls."""
    seen, before = _Seen(), {_key(s): s.calls for s in report.sites}

    def leave(path: str, output: Any) -> None:
        seen.at.pop()

    with watched(model, seen.at.append, leave), seen:
        call()
    places: dict[tuple[str, str], dict[str, int]] = {}
    for (path, name, text), count in seen.calls.items():
        places.setdefault((path, name), {})[text] = count
    sites = [_called(path, seen.known[name], texts, report.sites) for (path, name), texts in places.items()]
    # A module whose packed weight PyTorch unpacks and multiplies calls none of our kernels, but is a site as well.
    ran = [s for s in report.sites if s.calls > before.get(_key(s), 0) and s.state is not State.LEFT]
    known = {path for path, _ in places} | {name for c in sites for name in c.site.split(", ")}
    return sites + [Called(s.path, s.path, s.op, s.form, s.kernel, {}) for s in ran if s.path not in known]


def _key(site: Site) -> tuple[str, str, str]:
    return site.path, site.op, site.form


def _called(path: str, run: Operator, workloads: Mapping[str, int], sites: Sequence[Site]) -> Called:
    here = [s for s in sites if s.kernel == run.kernel.name and s.state is not State.LEFT and _runs_at(s, path)]
    label = ", ".join(s.path or "(the model)" for s in here) or path
    op, form = (here[0].op, here[0].form) if here else (run.op.name, "module")
    return Called(label, path, op, form, run.kernel.name, dict(workloads), run.name)


def _runs_at(site: Site, path: str) -> bool:
    if site.form != "fused":
        return site.path == path
    return all(name.startswith(f"{path}." if path else "") for name in site.path.split(" + "))


def workload(run: Operator, arguments: Sequence[Any]) -> Workload:
    """Return the workload of one call, from the tensors passed to the kernel."""
    op = run.op
    tensors = dict(zip(op.inputs, arguments, strict=False))
    sizes = {
        dim: size
        for name, declared in op.inputs.items()
        if tensors[name] is not None
        for dim, size in zip(declared.shape, tensors[name].shape, strict=True)
    }
    carriers = (tensors[n] for n, t in op.inputs.items() if t.dtype is None and tensors[n] is not None)
    number = next((t.dtype for t in carriers), arguments[-1])
    values = arguments[len(op.inputs) : len(op.inputs) + len(op.attributes)]
    apart = [n for n, t in op.inputs.items() if t.strided and _rows_apart(tensors[n])]
    return Workload(
        op,
        tuple((axis, int(sizes[axis])) for axis in op.axes),
        dtype(number),
        tuple(zip(op.attributes, values, strict=True)),
        strided=tuple(apart),
        without=tuple(n for n, t in tensors.items() if t is None and n in op.inputs),
    )


def _rows_apart(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and not tensor.is_contiguous()
