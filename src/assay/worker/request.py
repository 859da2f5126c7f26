"""What a worker is told: which kernel, on which workload, and where every tensor lies."""

from __future__ import annotations

import math
from typing import Any

from assay import inputs as drawing
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.op import Op
from assay.worker.channel import place
from assay.workload import Workload

_STRIDE_GAP = 3
"""Elements between the rows of a strided input: odd, so that rows lose their alignment too."""


_SCATTER = 2
"""Stride of the last dimension of a scattered tensor."""


class Layout:
    """Where every tensor of a workload lies: in the arena, and in the worker's guarded buffers."""

    def __init__(self, kernel: Kernel, op: Op, workload: Workload, runs: int, variations: int = drawing.FRESH) -> None:
        derived = kernel.file is None or bool(kernel.launches)
        self.inputs, self.outputs, self.scratch = [], [], []
        sizes: list[int] = []
        for name, t in op.present(workload).items():
            shape = op.shape(t, workload)
            self.inputs.append(self._spec(name, t.dtype_in(workload).name, shape, workload))
            sizes += [self._bytes(self.inputs[-1])] * variations
        for name, t in op.outputs.items():
            if name in workload.without:
                continue
            if not derived and name not in kernel.parameters and (t.optional or not kernel.returns):
                continue
            spec = self._spec(name, t.dtype_in(workload).name, op.shape(t, workload), workload)
            spec["alias"] = op.aliases.get(name) if workload.inplace else None
            self.outputs.append(spec)
            sizes += [self._bytes(spec)] * runs
        for name, (number, *dims) in kernel.scratch.items():
            self.scratch.append(self._spec(name, number, tuple(op.size(d, workload) for d in dims)))
        offsets, self.total = place(sizes)
        places = iter(offsets)
        for spec in self.inputs:
            spec["at"] = [next(places) for _ in range(variations)]
        for spec in self.outputs:
            spec["at"] = [next(places) for _ in range(runs)]

    @staticmethod
    def _spec(name: str, number: str, shape: tuple[int, ...], workload: Workload | None = None) -> dict[str, Any]:
        d = dtype(number)
        apart = workload is not None and len(shape) > 1 and name in (*workload.strided, *workload.scattered)
        step = _SCATTER if workload is not None and name in workload.scattered else 1
        row = shape[-1] * step + (_STRIDE_GAP if apart else 0) if shape else 0
        strides = [math.prod(shape[i + 1 : -1]) * row for i in range(len(shape) - 1)] + [step] * bool(shape)
        return {
            "name": name,
            "dtype": d.torch_name,
            "shape": list(shape),
            "strides": strides,
            "offset": workload.offset if workload else 0,
            "poison": d.poisons,
        }

    @staticmethod
    def _bytes(spec: dict[str, Any]) -> int:
        return math.prod(spec["shape"]) * dtype(spec["dtype"]).itemsize


def message(
    kernel: Kernel, op: Op, workload: Workload, layout: Layout, mode: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    """What a worker must know to run or build a kernel on a workload."""
    return {
        "kernel": kernel.to_dict(),
        "op": op.name,
        "op_file": op.source,
        "dtype": workload.dtype.name,
        "mode": mode,
        "parameters": parameters,
        "inputs": layout.inputs,
        "outputs": layout.outputs,
        "scratch": layout.scratch,
        "arena": layout.total,
        "present": list(op.present(workload)),
        "attributes": dict(workload.attributes),
        "axes": {**dict(workload.axes), **{n: f(workload) for n, f in op.derived.items()}},
    }
