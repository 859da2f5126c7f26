"""Plain PyTorch in the workload's dtype, the baseline of a kernel's error. It runs on the CPU in the parent and on the
GPU in a worker that never runs a kernel."""

from __future__ import annotations

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
from assay.worker.failure import Refused
from assay.worker.questions import Evaluate
from assay.worker.request import placed, spec
from assay.workload import Workload

SAMPLE = Effort(24, 1 << 13, 1 << 15, 1 << 15, 0)
"""The fixed sample that priors are computed on."""
UNUSUAL = ("special", "lines", "beyond")


class PlainTorch:
    """One worker that all threads use in turn."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._worker: Worker | None = None
        self._priors: dict[Any, Prior] = {}
        self._computing: dict[Any, threading.Lock] = {}

    def prior(self, op: Op, dtype: DType, device: str) -> Prior:
        """PyTorch's own errors on a fixed sample of `op`, the same in every run and in every replay."""
        # Two files may have different ops of one name, and a kernel may support part of an op: each has its own limits.
        optional = tuple(n for n, t in op.inputs.items() if t.optional)
        key = (op.name, op.source, tuple(op.axes.items()), optional, dtype.name, device)
        with self._computing.setdefault(key, threading.Lock()):
            if key not in self._priors:
                self._priors[key] = {} if op.random else self._measured(op, dtype, device)
        return self._priors[key]

    def _measured(self, op: Op, dtype: DType, device: str) -> Prior:
        prior: Prior = {}
        for row in plan(op, dtype, SAMPLE).rows:
            if (workload := row.workload).values not in UNUSUAL:
                drawn = [generate(workload)]
                for inputs, answer in zip(drawn, self.outputs(workload, drawn, device), strict=True):
                    calibrate(prior, oracle(workload, inputs), answer)
        return prior

    def outputs(
        self, workload: Workload, drawn: list[dict[str, torch.Tensor]], device: str
    ) -> list[dict[str, torch.Tensor]]:
        """PyTorch's outputs for each set of inputs."""
        if device == "cpu":
            return [baseline(workload, inputs) for inputs in drawn]
        with self._lock:
            if self._worker is None:
                self._worker = self._pool.worker("torch", "native")
            return self._ask(self._worker, workload, drawn)

    def _ask(
        self, worker: Worker, workload: Workload, drawn: list[dict[str, torch.Tensor]]
    ) -> list[dict[str, torch.Tensor]]:
        op = workload.op
        count = len(drawn)
        present = workload.present
        specs = [spec(n, workload.dtype_of(t), tuple(drawn[0][n].shape)) for n, t in present.items()]
        specs += [spec(n, workload.dtype_of(t), workload.shape(t)) for n, t in op.outputs.items()]
        placed_, total = placed([(one, count) for one in specs])
        inputs, outputs = tuple(placed_[: len(present)]), tuple(placed_[len(present) :])
        memory = worker.memory(total)
        for one in inputs:
            for index, values in enumerate(drawn):
                one.values(memory, index).copy_(values[one.name])
        request = Evaluate(op.name, op.source, inputs, outputs, total, dict(workload.attributes), "cuda")
        try:
            worker.ask(request, 300)
        except Refused as refused:
            words = f"the reference of {op.name} failed in PyTorch on the GPU: {refused.failure.message}"
            raise RuntimeError(words) from None
        return [{one.name: one.values(memory, index).clone() for one in outputs} for index in range(count)]
