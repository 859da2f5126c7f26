"""Inside a worker: checks what a batch wrote. Its outputs are read on the batch's own stream right before its first
call, when nothing may be written yet, right after its last call, and again when the device is idle. The outputs of one
call, chosen after the batch, go to the parent."""

from __future__ import annotations

from typing import Any

from assay.errors import AssayError
from assay.worker import bound
from assay.worker.bits import bits
from assay.worker.buffers import Buffers
from assay.worker.execute import output_in
from assay.worker.questions import Fetched, Time
from assay.worker.request import TensorSpec

_WAIT, _WAITS = 0.2, 15
"""Seconds between checks for late work after an element was found unwritten, and the most checks in a round. Earlier
calls may still be waiting for their turn too."""
_AT = {"cold": 0, "hot": 1}
"""The index of the place in the arena for the outputs of each kind of batch."""


class Finding(AssayError):
    """Ends the round: the kernel did something for which no time can be given."""

    def __init__(self, detector: str, what: str) -> None:
        super().__init__(what)
        self.detector = detector


class Aftermath:
    def __init__(self, request: Time, buffers: Buffers, memory: memoryview) -> None:
        self._buffers, self._memory = buffers, memory
        self._returns, self._outputs = request.call.kernel.returns, request.call.outputs
        self._names = [spec.name for spec in self._outputs]
        self._before: list[Any] = []
        """Masks of the poison in the outputs right before the batch."""
        self._early: list[Any] = []
        self._first, self._calls, self._patience = 0, 0, _WAITS
        self.fetched: dict[str, Fetched] = {}
        """The call whose outputs are in the arena, by kind of batch."""

    def begin(self, first: int, calls: int) -> None:
        self._first, self._calls = first, calls
        self._buffers.returned, self._before = {}, []
        if self._returns:  # the return values of two calls are kept: of any one, and of the last
            self._buffers.keep = {first + bound.below(calls), first + calls - 1}

    def clear(self) -> None:
        """Poison what calls returned while they were captured into a graph. Queued first of all."""
        for spec, value in self._captured():
            bound.fill_(bits(value), self._buffers.pattern(spec))

    def at_start(self) -> None:
        """Record whether any output is written too early. Queued after the calls that lead, right before the batch."""
        if self._returns:
            self._before = [bound.flatten(bits(v))[-1:] == self._buffers.pattern(spec) for spec, v in self._captured()]
        else:
            self._before = list(self._buffers.poison_in(self._buffers.look(1)))

    def spoil(self) -> None:
        """Poison part of the outputs of the last call on these buffers: the next one must not rely on them."""
        if not self._returns:
            self._buffers.poison_some()
        elif 0 in self._buffers.returned:
            for spec, value in zip(self._outputs, self._returned(0), strict=True):
                bound.fill_(bits(value), self._buffers.pattern(spec))

    def still_spoiled(self) -> bool:
        """True if single calls left an output as `spoil` made it. A result may equal the poison by chance."""
        if self._returns:
            left = [bits(value) == self._buffers.pattern(spec) for spec, value in self._captured()]
        else:
            left = list(self._buffers.poison_in(self._buffers.look()))
        return any(bool(bound.all_(poison)) for poison in left)

    def _captured(self) -> list[tuple[TensorSpec, Any]]:
        held = [i for i in sorted(self._buffers.keep) if i in self._buffers.returned]
        return [pair for i in held for pair in zip(self._outputs, self._returned(i), strict=True) if pair[1].numel()]

    def at_once(self) -> None:
        """Record the outputs that a caller on the batch's stream would read. Queued there after its last call."""
        if self._returns:
            self._early = [bound.clone(t) for i in sorted(self._buffers.keep) for t in self._returned(i)]
        else:
            self._early = self._buffers.look()

    def end(self, kind: str, fetch: bool) -> None:
        """Check the outputs while the device is idle. Calls that left poison are always fetched, others on request."""
        early = not all(bool(bound.all_(poison)) for poison in self._before) or not self._buffers.untouched()
        chosen = None if self._returns else self._buffers.unwritten(self._early)
        if (early or chosen is not None) and self._buffers.device == "cpu":
            self._wait()  # a late thread writes the outputs of earlier calls, which looks early, and then these
        if self._changed():
            raise Finding(
                "unfinished",
                "outputs still changed after the timed batch: the work goes on in a thread or on a stream of its own",
            )
        if early:
            raise Finding("early", "a call's outputs were written before that call: an earlier one did its work")
        if chosen is None and fetch:
            chosen = min(self._buffers.keep) if self._returns else self._first + bound.below(self._calls)
        if chosen is not None:
            self._fetch(kind, chosen)

    def _changed(self) -> bool:
        return not all(map(_same, self._early, self._late()))

    def _wait(self) -> None:
        """Wait until something changes, within limits: a result that looks unwritten may be right, in every batch."""
        for _ in range(max(1, self._patience)):
            self._patience -= 1
            bound.pause(_WAIT)
            if self._changed():
                return

    def _late(self) -> list[Any]:
        if self._returns:
            return [t for i in sorted(self._buffers.keep) for t in self._returned(i)]
        return self._buffers.look()

    def _fetch(self, kind: str, chosen: int) -> None:
        index = chosen % self._buffers.count
        held = self._returned(chosen) if self._returns else [self._buffers.slabs[n].tensor(index) for n in self._names]
        for spec, value in zip(self._outputs, held, strict=True):
            bound.copy_(spec.values(self._memory, _AT[kind]), value)
        self.fetched[kind] = self._buffers.fetched(index)

    def _returned(self, call: int) -> list[Any]:
        """Return the tensors that one call returned. Raise Finding if one shares memory or is computed when read."""
        outputs = []
        for spec in self._outputs:
            value = output_in(self._buffers.returned.get(call), spec, self._names)
            if type(value) not in (bound.Tensor, bound.Parameter):
                what = f"`{spec.name}` was returned as a {type(value).__name__}, which may be computed when it is read"
                raise Finding("unfinished", f"{what}: return a torch.Tensor")
            memory = bound.untyped_storage(value).data_ptr()
            shared = [
                n for n, slab in self._buffers.slabs.items() if bound.untyped_storage(slab.flat).data_ptr() == memory
            ]
            if shared:
                raise Finding("alias", f"the returned `{spec.name}` is a view of `{shared[0]}`: nothing was written")
            if any(n > 1 and s == 0 for n, s in zip(value.shape, value.stride(), strict=True)):
                raise Finding("alias", f"the returned `{spec.name}` is expanded: its elements share memory")
            outputs.append(value)
        return outputs


def _same(a: Any, b: Any) -> bool:
    """True if both are equal bit for bit."""
    return bool(bound.equal(bits(a), bits(b)))
