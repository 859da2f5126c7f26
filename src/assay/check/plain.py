"""Plain PyTorch in the workload's dtype, the baseline of a kernel's error. It runs on the CPU in the parent and on the
GPU in a worker that never runs a kernel."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

from assay.check import overflow
from assay.check.judge import Prior, as_rounded, calibrate, units_off
from assay.check.oracle import Oracle, baseline, oracle
from assay.coverage import Effort, plan
from assay.dtype import DType, dtype
from assay.inputs import generate
from assay.lazy import torch
from assay.op import Op
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import Evaluate
from assay.worker.request import placed, spec
from assay.workload import Workload

SAMPLE = Effort(24, 1 << 13, 1 << 15, 1 << 15, 0, again=0)
"""The fixed sample that priors are computed on."""
UNUSUAL = ("special", "lines", "beyond")
FAR = 32.0
"""PyTorch's outputs are computed again without the vendor's library if they are more than this many units from the
oracle, and roundings to a 16-bit format do not explain it."""
NEARER = 8.0
"""The second outputs replace the first if they are at least this many times nearer to the oracle."""
VENDOR = {"cpu": "oneDNN", "cuda": "cuDNN"}
"""The library that PyTorch computes convolutions with, by device."""


@dataclass(frozen=True)
class Baseline:
    """PyTorch's outputs, whose errors set a kernel's tolerance."""

    outputs: dict[str, torch.Tensor]
    wrong: str = ""
    """The vendor's library or the arithmetic, if PyTorch is wrong with it; these outputs were computed without it."""


class PlainTorch:
    """Plain PyTorch on the CPU, or on a GPU in one worker that all threads use in turn."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._lock = pool, threading.Lock()
        self._worker: Worker | None = None
        self._priors: dict[Any, Prior] = {}
        self._computing: dict[Any, threading.Lock] = {}

    def prior(self, op: Op, dtype: DType, device: str) -> Prior:
        """Return PyTorch's own errors on a fixed sample of `op`, the same in every run and in every replay."""
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
                inputs = generate(workload)
                truth = oracle(workload, inputs)
                calibrate(prior, truth, self.baseline(workload, inputs, truth, device).outputs)
        return prior

    def baseline(self, workload: Workload, inputs: dict[str, torch.Tensor], truth: Oracle, device: str) -> Baseline:
        """Return PyTorch's outputs; if they are wrong, computed in wide formats or without the vendor's library.

        In PyTorch 2.13, on processors with AMX, oneDNN's bf16 convolutions are wrong where the output is one wide, and
        its bf16 products where a row of odd length is followed by a NaN. In any version a square in fp16 may overflow.
        Such an error would excuse any kernel, so outputs far from the oracle are computed again, and those are returned
        if they are much nearer."""
        (answer,) = self.outputs(workload, [inputs], device)
        far = _largest_error(truth, answer)
        if far <= FAR or (far < math.inf and _rounds_between(truth, answer)):
            return Baseline(answer)
        found = overflow.in_wide_formats(workload, inputs)
        if found and _largest_error(truth, found[0]) * NEARER < far:
            return Baseline(*found)
        other = self._without_vendor(workload, inputs, device)
        if other and _largest_error(truth, other) * NEARER < far:
            return Baseline(other, VENDOR[_kind(device)])
        return Baseline(answer)

    def _without_vendor(
        self, workload: Workload, inputs: dict[str, torch.Tensor], device: str
    ) -> dict[str, torch.Tensor]:
        """Evaluate in the worker, because the setting holds for all threads of a process. Return nothing if PyTorch
        cannot compute the op without the library."""
        with self._lock:
            try:
                return self._ask(self._running(), workload, [inputs], _kind(device), vendor=False)[0]
            except RuntimeError:
                return {}
            except WorkerLost:
                self._worker = None
                return {}

    def outputs(
        self, workload: Workload, drawn: list[dict[str, torch.Tensor]], device: str
    ) -> list[dict[str, torch.Tensor]]:
        """Return PyTorch's outputs for each set of inputs."""
        if device == "cpu":
            return [baseline(workload, inputs) for inputs in drawn]
        with self._lock:
            return self._ask(self._running(), workload, drawn, "cuda")

    def _running(self) -> Worker:
        if self._worker is None:
            self._worker = self._pool.worker("torch", "native")
        return self._worker

    def _ask(
        self,
        worker: Worker,
        workload: Workload,
        drawn: list[dict[str, torch.Tensor]],
        device: str,
        vendor: bool = True,
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
        request = Evaluate(op.name, op.source, inputs, outputs, total, dict(workload.attributes), device, vendor)
        try:
            worker.ask(request, 300)
        except Refused as refused:
            where = "on the GPU" if device == "cuda" else "on the CPU"
            where += "" if vendor else f" without {VENDOR[device]}"
            words = f"the reference of {op.name} failed in PyTorch {where}: {refused.failure.message}"
            raise RuntimeError(words) from None
        return [{one.name: one.values(memory, index).clone() for one in outputs} for index in range(count)]


def _rounds_between(truth: Oracle, answer: dict[str, torch.Tensor]) -> bool:
    """True if PyTorch may only have rounded its sums to a 16-bit format before it used them further, as cuDNN does
    before a bias is added. Where those cancel, the result is far from the oracle but not wrong."""
    narrow = {n: dtype(v.dtype) for n, v in answer.items()}
    return all(d.itemsize < 4 and as_rounded(truth, n, answer[n].double(), d) for n, d in narrow.items())


def _kind(device: str) -> str:
    return "cpu" if device == "cpu" else "cuda"


def _largest_error(truth: Oracle, answer: dict[str, torch.Tensor]) -> float:
    """Return the largest error in units where the oracle is finite; infinite if the answer is not finite there."""
    largest = 0.0
    for name, value in answer.items():
        if value.numel() and not truth.only(name, dtype(value.dtype)):
            error, rounded = units_off(truth, name, value)
            finite = error[rounded.isfinite()].nan_to_num(float("inf"), float("inf"))
            largest = max(largest, float(finite.max()) if finite.numel() else 0.0)
    return largest
