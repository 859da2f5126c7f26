"""Plain PyTorch in the workload's dtype: the error a kernel is held against. On the CPU here in the parent; on the GPU
in a worker that never sees a kernel."""

from __future__ import annotations

import math
import threading
from typing import Any

from assay.check.judge import Prior, calibrate
from assay.check.oracle import baseline, oracle
from assay.coverage import Effort, plan
from assay.dtype import DType
from assay.inputs import generate
from assay.lazy import torch
from assay.op import Op
from assay.worker import Pool, Worker
from assay.worker.channel import place, tensor
from assay.workload import Workload

SAMPLE = Effort(24, 1 << 13, 1 << 15, 1 << 15, 0)
"""The fixed sample."""
UNUSUAL = ("special", "lines", "beyond")


class PlainTorch:
    """One worker, asked by every thread in turn."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._worker: Worker | None = None
        self._priors: dict[Any, Prior] = {}

    def prior(self, op: Op, dtype: DType, device: str) -> Prior:
        """PyTorch's own errors on a fixed sample of `op`, the same in every run and in every replay."""
        # Two files may call different ops alike, and a kernel may take less of one: neither may lend its limits.
        optional = tuple(n for n, t in op.inputs.items() if t.optional)
        key = (op.name, op.source, tuple(op.axes.items()), optional, dtype.name, device)
        if key not in self._priors and op.random:
            self._priors[key] = {}
        if key not in self._priors:
            prior: Prior = {}
            for row in plan(op, dtype, SAMPLE).rows:
                if (workload := row.workload).values not in UNUSUAL:
                    drawn = [generate(op, workload)]
                    for inputs, answer in zip(drawn, self.outputs(op, workload, drawn, device), strict=True):
                        calibrate(prior, oracle(op, workload, inputs), answer)
            self._priors[key] = prior
        return self._priors[key]

    def outputs(
        self, op: Op, workload: Workload, drawn: list[dict[str, torch.Tensor]], device: str
    ) -> list[dict[str, torch.Tensor]]:
        """Its answers to each set of inputs."""
        if device == "cpu":
            return [baseline(op, workload, inputs) for inputs in drawn]
        with self._lock:
            if self._worker is None:
                self._worker = self._pool.worker("torch", "native")
            return self._ask(self._worker, op, workload, drawn)

    def _ask(
        self, worker: Worker, op: Op, workload: Workload, drawn: list[dict[str, torch.Tensor]]
    ) -> list[dict[str, torch.Tensor]]:
        inputs: list[dict[str, Any]] = []
        outputs: list[dict[str, Any]] = []
        sizes = []
        for name, t in op.present(workload).items():
            value = drawn[0][name]
            inputs.append({"name": name, "dtype": t.dtype_in(workload).torch_name, "shape": list(value.shape)})
            sizes += [value.numel() * value.element_size()] * len(drawn)
        for name, t in op.outputs.items():
            number, shape = t.dtype_in(workload), op.shape(t, workload)
            outputs.append({"name": name, "dtype": number.torch_name, "shape": list(shape)})
            sizes += [math.prod(shape) * number.itemsize] * len(drawn)
        offsets, total = place(sizes)
        places = iter(offsets)
        for spec in (*inputs, *outputs):
            spec["at"] = [next(places) for _ in range(len(drawn))]
        memory = worker.memory(total)
        for spec in inputs:
            for at, values in zip(spec["at"], drawn, strict=True):
                tensor(memory, at, values[spec["name"]].dtype, spec["shape"]).copy_(values[spec["name"]])
        answer = worker.ask(
            {
                "do": "reference",
                "op": op.name,
                "op_file": op.source,
                "inputs": inputs,
                "outputs": outputs,
                "arena": total,
                "variations": len(drawn),
                "attributes": dict(workload.attributes),
                "device": "cuda",
            },
            300,
        )
        if "error" in answer:
            raise RuntimeError(f"the reference of {op.name} failed in PyTorch on the GPU: {answer['error']['message']}")

        return [
            {s["name"]: tensor(memory, s["at"][i], getattr(torch, s["dtype"]), s["shape"]).clone() for s in outputs}
            for i in range(len(drawn))
        ]
