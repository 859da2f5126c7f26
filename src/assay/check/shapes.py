"""Compares the shapes that an op's reference returns on a workload with those that the op declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.errors import SourceError
from assay.lazy import torch
from assay.op import Tensor
from assay.provenance import shown
from assay.workload import Workload


def verify_shapes(workload: Workload, inputs: dict[str, torch.Tensor], results: dict[str, Any]) -> None:
    """Raise SourceError if a result has another shape than the op declares. The inputs may be one slice of the
    workload's, so sizes of axes are taken from them first."""
    op = workload.op
    sizes = {axis: int(size) for axis, size in workload.axes}
    for name, value in inputs.items():
        sizes |= {axis: n for axis, n in zip(op.inputs[name].shape, value.shape, strict=False) if isinstance(axis, str)}
    for name, tensor in op.outputs.items():
        result = results[name]
        if not isinstance(result, torch.Tensor):
            continue
        declared = tuple(sizes[axis] if axis in sizes else workload.length(axis) for axis in tensor.shape)
        if tuple(result.shape) != declared:
            raise SourceError(
                f"op {op.name}: the reference returns shape {_of_sizes(tuple(result.shape), workload)}, "
                f"`{name}` is declared {_of_axes(tensor, declared)} (on {workload})",
                where=f"{shown(Path(op.source))}:{op.reference.__code__.co_firstlineno}",
                fix=f"fix the reference, or the axes of `{name}`",
            )


def _of_sizes(shape: tuple[int, ...], workload: Workload) -> str:
    """Return the shape, with the names of axes if only one axis has each of these sizes."""
    names = [[axis for axis, size in workload.axes if size == length] for length in shape]
    if not shape or any(len(axes) != 1 for axes in names):
        return str(shape)
    return f"({', '.join(axes[0] for axes in names)})={shape}"


def _of_axes(tensor: Tensor, shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, tensor.shape))})={shape}" if shape else "()"
