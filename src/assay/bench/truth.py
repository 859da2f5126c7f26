"""Checks the outputs of timed calls: a kernel that is fast because it stopped computing fails."""

from __future__ import annotations

import contextlib
import math
import random
import threading
from functools import cached_property

from assay import inputs as drawing
from assay.check import rounding
from assay.check.judge import Finding, Measures, Prior, judge
from assay.check.oracle import oracle
from assay.check.plain import PlainTorch
from assay.check.slices import HUGE, judged_in_slices
from assay.lazy import torch
from assay.worker.bits import bits
from assay.worker.change import changed
from assay.worker.questions import Fetched
from assay.workload import Workload

_MANY = 1 << 22
"""Outputs of more elements than this are judged in slices if the op's results are independent: judging all of them
takes longer than all the timing, and shows no more."""
_FEW = 1 << 16
"""Outputs of no more elements than this are judged in every round."""
_SLICE = 1 << 18
_COSTLY = 1 << 19
"""Replaces `_MANY` for an op that declares neither `magnitude` nor `roundings`: measuring them takes ten times as
long."""
_COSTLY_SLICE = 1 << 15
_OFTEN, _SELDOM = 0.25, 0.1
"""The probability that a later round is judged, for outputs of fewer and of more than `_MANY` elements."""
_DRAWN = 1 << 30
"""Bytes of inputs above which only one set of values is drawn; calls still differ by the changes made to those
values."""


def changeable(workload: Workload) -> list[str]:
    """Return the inputs whose elements may be exchanged for each other: none that has a form, and none at all if an
    input is computed from the others, since it would no longer match them."""
    present = workload.present
    return [] if any(t.given for t in present.values()) else [n for n, t in present.items() if not t.form]


class Truth:
    """The correct outputs of a workload, for every set of values in use."""

    def __init__(self, workload: Workload, plain: PlainTorch, device: str, slice_: int = 0) -> None:
        """`slice_` is the number of elements in a slice if kernels were checked on this workload before, else 0."""
        self.workload = workload
        self.elements = workload.elements
        self.huge = self.elements > HUGE
        self.many = self.elements > (_FEW if slice_ else _MANY)
        self._slice = slice_ or _SLICE
        size = sum(workload.dtype_of(t).itemsize * math.prod(workload.shape(t)) for t in workload.present.values())
        self.sets = 1 if size > _DRAWN else 2 if self.many else drawing.FRESH
        self.changeable = changeable(workload)
        self._plain, self._device, self._rng = plain, device, random.SystemRandom()
        self._right: dict[tuple[str, int], dict[str, torch.Tensor]] = {}
        """Outputs already judged correct, by kernel and set of values: most kernels return the same bits again."""

    @cached_property
    def drawn(self) -> list[dict[str, torch.Tensor]]:
        """The sets of values."""
        return [drawing.generate(self.workload, v) for v in range(self.sets)]

    def draw(self) -> None:
        """Draw the values now instead of on first use."""
        _ = self.drawn

    def calibrate_meanwhile(self) -> None:
        """Compute what `judge` needs for every call of this op, in a thread."""

        def calibrate() -> None:
            with contextlib.suppress(Exception):  # it recurs in `judge`
                self._prior()

        threading.Thread(target=calibrate, daemon=True).start()

    def _prior(self) -> Prior:
        return self._plain.prior(self.workload.op, self.workload.dtype, self._device)

    def wants(self, number: int) -> list[str]:
        """Return the kinds of batches from which this round fetches a call's outputs: all in the first round, and some
        at random in later rounds, which a kernel cannot predict. Outputs of up to `_FEW` elements are always fetched;
        of more than `_MANY` the first round fetches only the cold batch's, and of more than `HUGE` no later round does,
        since fetching gigabytes takes longer than all the timing."""
        if self.elements <= _FEW or (number == 0 and not self.many):
            return ["cold", "hot"]
        if number == 0:
            return ["cold"]
        often = 0 if self.huge else _SELDOM if self.many else _OFTEN
        return [kind for kind in ("cold", "hot") if self._rng.random() < often]

    def wants_parent_clock(self, number: int) -> bool:
        """Return whether the parent's own clock is taken after this round."""
        return number == 1 or self._rng.random() < _OFTEN / 2

    def judge(self, kernel: str, call: Fetched, outputs: dict[str, torch.Tensor]) -> Finding | None:
        """Return what is wrong with a call's outputs, or None. `call` says which values the call had, as the worker
        reports it."""
        variation = call.variation % self.sets
        if not self.changeable:
            known = self._right.get((kernel, variation))
            if known and all(torch.equal(known[n], v) for n, v in outputs.items()):
                return None
        finding = self._judge(call, outputs)
        if finding is None and not self.changeable and not self.huge:
            self._right[kernel, variation] = {n: v.clone() for n, v in outputs.items()}
        return finding

    def _judge(self, call: Fetched, outputs: dict[str, torch.Tensor]) -> Finding | None:
        prior = self._prior()
        inputs = self._inputs(call)
        op = self.workload.op
        costly = op.magnitude is None and op.roundings is None and self.elements > _COSTLY
        if (self.many or costly) and op.independent:
            size = min(_COSTLY_SLICE, self._slice) if costly else self._slice
            return judged_in_slices(self.workload, inputs, outputs, prior, size=size).finding
        if self._moves:
            (plain,) = self._plain.outputs(self.workload, [inputs], self._device)
            if all(torch.equal(bits(v), bits(plain[n])) for n, v in outputs.items()):
                return None
        truth = oracle(self.workload, inputs)
        plain = self._plain.baseline(self.workload, inputs, truth, self._device).outputs
        return judge(outputs, Measures(truth, plain, prior)).finding

    @cached_property
    def _moves(self) -> bool:
        """Whether the reference only moves values, so that plain PyTorch's bits are the correct ones. An op that
        declares `roundings=0` but computes is judged against the oracle."""
        return self.workload.op.roundings == 0 and not any(rounding.samples(self.workload, self.drawn[0], 1))

    def _inputs(self, call: Fetched) -> dict[str, torch.Tensor]:
        """Return the inputs of the call. A worker's report is forced into range: a false one gives other inputs, and
        the judgement fails."""
        drawn = self.drawn[call.variation % self.sets]
        sets = max(1, call.sets)
        seed, index = abs(call.seed) % (1 << 48), call.set % sets
        return {
            name: changed(value, seed, number, sets, index) if name in self.changeable else value
            for number, (name, value) in enumerate(drawn.items())
        }
