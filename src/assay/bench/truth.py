"""Outputs of timed calls, checked afterwards: a kernel that is fast because it stopped computing is a failure."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from assay import inputs as drawing
from assay.check.judge import Finding, Prior, judge
from assay.check.oracle import oracle
from assay.check.plain import PlainTorch
from assay.check.slices import HUGE, judged_in_slices
from assay.op import Op
from assay.worker.change import changed
from assay.worker.questions import Fetched
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

_MANY = 1 << 22
"""Elements above which slices of the outputs are judged, where results are independent: more costs more than all the
timing, and shows no more. Fewer are judged whole."""
_FEW = 1 << 16
"""Elements up to which an output of every round is judged."""
_SLICE = 1 << 18
_OFTEN, _SELDOM = 0.25, 0.1
_DRAWN = 1 << 30
"""Bytes of inputs above which only one set of values is drawn; calls still differ by the changes made to it."""


def changeable(op: Op, workload: Workload) -> list[str]:
    """The inputs whose elements may take each other's values: not those that have a form, and none where an input
    follows from the others, for it would no longer be what it stands for."""
    present = op.present(workload)
    return [] if any(t.given for t in present.values()) else [n for n, t in present.items() if not t.form]


class Truth:
    """What a workload's outputs must be, for every set of values in use."""

    def __init__(self, op: Op, workload: Workload, plain: PlainTorch, device: str) -> None:
        self.op, self.workload = op, workload
        self.elements = op.elements(workload)
        self.huge = self.elements > HUGE
        self.many = self.elements > _MANY
        first = drawing.generate(op, workload, 0)
        size = sum(v.nbytes for v in first.values())
        count = 1 if size > _DRAWN else 2 if self.many else drawing.FRESH
        self.drawn = [first, *(drawing.generate(op, workload, v) for v in range(1, count))]
        self.changeable = changeable(op, workload)
        self._plain, self._device, self._rng = plain, device, random.SystemRandom()
        self._right: dict[tuple[str, int], dict[str, torch.Tensor]] = {}
        """Outputs already judged right, by kernel and set of values: most kernels give the same bits again."""

    def wants(self, number: int) -> list[str]:
        """The kinds of batches of this round of which a call's outputs are fetched: in the first round and in some
        later ones, which a kernel cannot know. Of few elements always; of gigabytes only in the first: fetching takes
        longer than all the timing."""
        if self.elements <= _FEW or (number == 0 and not self.many):
            return ["cold", "hot"]
        if number == 0:
            return ["cold"]
        often = 0 if self.huge else _SELDOM if self.many else _OFTEN
        return [kind for kind in ("cold", "hot") if self._rng.random() < often]

    def looks_again(self, number: int) -> bool:
        """Whether the parent's own clock is asked for after this round."""
        return number == 1 or self._rng.random() < _OFTEN / 2

    def judge(self, kernel: str, fetched: Fetched, outputs: dict[str, torch.Tensor]) -> Finding | None:
        """`fetched`: which values the call had, as the worker says."""
        import torch

        variation = fetched.variation % len(self.drawn)
        if not self.changeable:
            known = self._right.get((kernel, variation))
            if known and all(torch.equal(known[n], v) for n, v in outputs.items()):
                return None
        finding = self._judge(fetched, outputs)
        if finding is None and not self.changeable and not self.huge:
            self._right[kernel, variation] = {n: v.clone() for n, v in outputs.items()}
        return finding

    def _judge(self, fetched: Fetched, outputs: dict[str, torch.Tensor]) -> Finding | None:
        prior: Prior = self._plain.prior(self.op, self.workload.dtype, self._device)
        inputs = self._inputs(fetched)
        if self.many and self.op.independent:
            return judged_in_slices(self.op, self.workload, inputs, outputs, prior, size=_SLICE).finding
        (plain,) = self._plain.outputs(self.op, self.workload, [inputs], self._device)
        return judge(outputs, oracle(self.op, self.workload, inputs), plain, prior).finding

    def _inputs(self, fetched: Fetched) -> dict[str, torch.Tensor]:
        """What the call was given. Whatever a worker says is made to fit: a lie gives other inputs, and fails."""
        drawn = self.drawn[fetched.variation % len(self.drawn)]
        sets = max(1, fetched.sets)
        seed, index = abs(fetched.seed) % (1 << 48), fetched.set % sets
        return {
            name: changed(value, seed, number, sets, index) if name in self.changeable else value
            for number, (name, value) in enumerate(drawn.items())
        }
