"""The process compute-sanitizer watches: draws the inputs, calls the kernel once, waits. No guard bands: the
tool knows where every allocation ends."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from assay import inputs
from assay.backends import backend
from assay.catalog import library
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.worker import load
from assay.workload import Workload


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Run the kernel; returns its outputs by name."""
    import torch

    op = library.ops_of(Path(request["op_file"]))[request["op"]]
    workload = Workload.of(op, request["workload"])
    kernel = Kernel.from_dict(request["kernel"])
    language = backend(kernel.address.backend)
    here = language.availability()

    def empty(shape: tuple[int, ...], number: torch.dtype, gap: int = 0, offset: int = 0) -> torch.Tensor:
        row = (shape[-1] + gap) if shape else 1
        size = math.prod(shape[:-1]) * row - gap if math.prod(shape) else 0
        flat = torch.empty(offset + size, dtype=number, device=here.device)[offset:]
        strides = [math.prod(shape[i + 1 : -1]) * row for i in range(len(shape) - 1)] + [1] * bool(shape)
        return flat.as_strided(shape, strides, offset) if size else flat.view(shape)

    tensors: dict[str, torch.Tensor] = {}
    for name, values in inputs.generate(workload).items():
        gap = 3 if name in workload.strided and values.dim() > 1 else 0
        tensors[name] = empty(tuple(values.shape), values.dtype, gap, workload.offset)
        tensors[name].copy_(values)
    named: dict[str, Any] = dict(workload.attributes)
    for name, t in op.outputs.items():
        alias = op.aliases.get(name) if workload.inplace else None
        named[name] = (
            tensors[alias] if alias else empty(workload.shape(t), workload.dtype_of(t).torch, 0, workload.offset)
        )
    for name, (number, *sizes) in kernel.scratch.items():
        named[name] = empty(tuple(workload.length(s) for s in sizes), dtype(number).torch)
    load.prepare(kernel, here.mode)
    function = load.function(kernel, op, workload.dtype)
    keywords = load.keywords(kernel, op, named) | request["settings"]
    if kernel.launches:
        keywords |= {**dict(workload.axes), **{n: f(workload) for n, f in op.derived.items()}}
    language.invoke(function, tuple(tensors.get(n) for n in op.inputs), keywords)
    if here.device == "cuda":
        torch.cuda.synchronize()
    return {n: named[n] for n in op.outputs}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
