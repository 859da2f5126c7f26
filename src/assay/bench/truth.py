"""Outputs of timed calls, checked afterwards: a kernel that is fast because it stopped computing is a failure."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from assay import inputs as drawing
from assay.check.judge import Finding, Oracle, Prior, judge, oracle
from assay.check.plain import PlainTorch
from assay.check.trial import HUGE, judged_in_slices
from assay.op import Op
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

_MANY = 1 << 22
"""Elements above which one set of values serves all buffers and slices of the outputs are judged, where results are
independent: more costs more than all the timing, and shows no more. Fewer are judged whole, for several sets."""
_SLICE = 1 << 18
_OFTEN = 0.25


class Truth:
    """What a workload's outputs must be, for every set of values in use."""

    def __init__(self, op: Op, workload: Workload, plain: PlainTorch, device: str) -> None:
        self.op, self.workload = op, workload
        self.huge = op.elements(workload) > HUGE
        self.many = op.elements(workload) > _MANY
        self.drawn = [drawing.generate(op, workload, v) for v in range(1 if self.many else drawing.FRESH)]
        self._plain, self._device, self._rng = plain, device, random.SystemRandom()
        self._oracles: dict[int, Oracle] = {}
        self._plains: list[dict[str, torch.Tensor]] = []
        self._right: dict[tuple[str, int], dict[str, torch.Tensor]] = {}
        """Outputs already judged right, by kernel and set of values: most kernels give the same bits again."""

    def wants(self, number: int) -> bool:
        """Whether to fetch what a call of this round left behind. Of few elements always; of many in the first round
        and in some later ones, which a kernel cannot know; of gigabytes in the first: fetching takes longer than all
        the timing."""
        if number == 0 or not self.many:
            return True
        return not self.huge and self._rng.random() < _OFTEN

    def judge(self, kernel: str, variation: int, outputs: dict[str, torch.Tensor]) -> Finding | None:
        import torch

        known = self._right.get((kernel, variation))
        if known and all(torch.equal(known[n], v) for n, v in outputs.items()):
            return None
        found = self._judge(variation, outputs)
        if found is None and not self.huge:
            self._right[kernel, variation] = {n: v.clone() for n, v in outputs.items()}
        return found

    def _judge(self, variation: int, outputs: dict[str, torch.Tensor]) -> Finding | None:
        prior: Prior = self._plain.prior(self.op, self.workload.dtype, self._device)
        inputs = self.drawn[variation]
        if self.many and self.op.independent:
            return judged_in_slices(self.op, self.workload, inputs, outputs, prior, size=_SLICE).finding
        if variation not in self._oracles:
            self._oracles[variation] = oracle(self.op, self.workload, inputs)
        if not self._plains:
            self._plains = self._plain.outputs(self.op, self.workload, self.drawn, self._device)
        return judge(outputs, self._oracles[variation], self._plains[variation], prior).finding
