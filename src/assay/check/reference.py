"""Checks that the reference of a user's op returns what the op declares, by evaluating it once on a small workload
before kernels are compared with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay import inputs as drawing
from assay.check import raising
from assay.check.oracle import Oracle, oracle
from assay.dtype import dtype
from assay.errors import SourceError
from assay.lazy import torch
from assay.op import Op
from assay.provenance import shown
from assay.workload import Workload

_SIZES = (5, 4, 8, 16, 3, 2, 1)
"""Sizes that all axes have at once, if the contract excludes different ones."""
_DIFFERENT = (3, 5, 4, 7, 6, 2, 8)
"""Sizes of successive axes: a result with the axes of another output shows in its shape."""
_MANY = 1 << 20


def verify_reference(op: Op) -> None:
    """Raise SourceError if the op's reference or magnitude fails, or returns other shapes than it declares."""
    workload = _small(op)
    if workload is None:
        return
    where = f"{shown(Path(op.source))}:{op.reference.__code__.co_firstlineno}"
    with raising.named(workload, "its inputs could not be drawn"):
        drawn = drawing.generate(workload)
    with raising.named(workload, "the reference or magnitude failed"):
        try:
            truth = oracle(workload, drawn)
        except ValueError as error:
            if not str(error).startswith("zip()"):
                raise
            what = f"op {op.name}: the reference or magnitude does not return one result for each output"
            fix = f"return as many as there are outputs: {', '.join(op.outputs)}"
            raise SourceError(what, where=where, fix=fix) from error
    _verify_results(workload, truth, where)


def _small(op: Op) -> Workload | None:
    """Return a workload of a few elements within the contract, if possible with axes of different sizes; None if none
    of the simplest is."""
    attributes = tuple((n, a.default) for n, a in op.attributes.items())
    count = len(_DIFFERENT)
    different = [[_DIFFERENT[(start + i) % count] for i in range(len(op.axes))] for start in range(count)]
    for sizes in (*different, *([size] * len(op.axes) for size in _SIZES)):
        axes = tuple((n, max(a.min, min(a.max, size))) for (n, a), size in zip(op.axes.items(), sizes, strict=True))
        workload = Workload(op, axes, dtype(op.dtypes[0]), attributes)
        try:
            if workload.allowed and 0 < workload.elements < _MANY:
                return workload
        except Exception:  # the contract itself fails on such sizes; larger ones may work
            continue
    return None


def _verify_results(workload: Workload, truth: Oracle, where: str) -> None:
    op = workload.op
    for name, tensor in op.outputs.items():
        expected = workload.shape(tensor)
        exact: Any = truth.exact[name]
        if not isinstance(exact, torch.Tensor):
            what = f"op {op.name}: the reference returns {type(exact).__name__} for '{name}', not a tensor"
            raise SourceError(what, where=where, fix="return PyTorch tensors")
        _verify_magnitude(op, name, truth.magnitude[name], expected, where)


def _verify_magnitude(op: Op, name: str, scale: torch.Tensor | None, expected: tuple[int, ...], where: str) -> None:
    if scale is None:
        return
    try:
        torch.broadcast_to(scale, expected)
    except (RuntimeError, TypeError, AttributeError):
        shape = tuple(scale.shape) if isinstance(scale, torch.Tensor) else type(scale).__name__
        what = f"op {op.name}: magnitude gives {shape} for '{name}', whose shape is {expected}"
        raise SourceError(what, where=where, fix="return one scale for each element of the output") from None
