"""Draws the inputs and calls the kernel once, in the process that compute-sanitizer runs. No guard bands are needed,
because the tool knows where every allocation ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay import inputs
from assay.backends import backend, here
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.worker import load
from assay.worker.fresh import Tick
from assay.worker.guard import alone
from assay.worker.messages import Request
from assay.worker.questions import Done
from assay.worker.request import Call
from assay.workload import Workload


@dataclass(frozen=True)
class CallOnce(Request[Done], answered_by="assay.sanitize.target:called"):
    """Call the kernel once, on plain tensors."""

    call: Call
    workload: str
    device: str


def request(kernel: Kernel, workload: Workload, parameters: Mapping[str, Any]) -> CallOnce:
    where = here(kernel)
    return CallOnce(Call.of(kernel, workload, where.mode, parameters), str(workload), where.device)


def called(request: CallOnce, tick: Tick) -> Done:
    outputs(request)
    return Done()


def outputs(request: CallOnce) -> dict[str, Any]:
    """Call the kernel, wait for the device, and return the outputs by name."""
    import torch

    call, op = request.call, load.op_of(request.call)
    tensors = {spec.name: alone(spec, request.device) for spec in call.tensors if not spec.alias}
    tensors |= {spec.name: tensors[spec.alias] for spec in call.outputs if spec.alias}
    for name, values in inputs.generate(Workload.of(op, request.workload)).items():
        tensors[name].copy_(values)
    load.prepare(call.kernel, call.mode)
    function = load.function(call.kernel, op, dtype(call.dtype))
    backend(call.kernel.address.backend).invoke(function, *load.arguments(call, op, tensors))
    if request.device == "cuda":
        torch.cuda.synchronize()
    return {spec.name: tensors[spec.name] for spec in call.outputs}
