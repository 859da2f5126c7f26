"""One set of input values of a workload, with the right answers."""

from __future__ import annotations

from functools import cached_property

from assay.check.judge import Judgement, Measures, judge
from assay.check.oracle import Oracle, oracle
from assay.check.outcome import Conditions
from assay.check.plain import Baseline
from assay.check.variations import Values
from assay.dtype import dtype
from assay.inputs import generate
from assay.lazy import torch
from assay.worker.request import Call
from assay.workload import Workload


class Case:
    """Computes the oracle's answer and plain PyTorch's when they are first needed."""

    change = ""
    """A description of how the values differ from the first ones."""

    def __init__(self, workload: Workload, layout: Call, conditions: Conditions, values: Values) -> None:
        self._workload, self._layout, self._conditions, self.values = workload, layout, conditions, values

    @classmethod
    def of(cls, workload: Workload, layout: Call, conditions: Conditions) -> Case:
        """Return the case of a workload's first values."""
        return cls(workload, layout, conditions, generate(workload))

    def prepare(self) -> None:
        """Compute what the judge needs now instead of on first use."""
        for spec in self._layout.outputs:
            if spec.elements:
                self._measures.of(spec.name, dtype(spec.dtype))

    @cached_property
    def truth(self) -> Oracle:
        return oracle(self._workload, self.values)

    @cached_property
    def plain(self) -> Baseline:
        return self._conditions.plain.baseline(self._workload, self.values, self.truth, self._conditions.here.device)

    @cached_property
    def _measures(self) -> Measures:
        return Measures(self.truth, self.plain.outputs, self._conditions.prior())

    @cached_property
    def right(self) -> dict[str, torch.Tensor]:
        """The exact answer, rounded once."""
        numbers = {spec.name: dtype(spec.dtype).torch for spec in self._layout.outputs}
        return {n: self.truth.rounded(n, dtype(number)).to(number).contiguous() for n, number in numbers.items()}

    def judge(self, result: dict[str, torch.Tensor], controls: bool = False, orders: bool = True) -> Judgement:
        return judge(result, self._measures, controls, orders)
