"""Inside a worker: one round of a benchmark. Fresh buffers, then batches that rotate over more memory than any cache
holds (cold), batches on the same buffers (hot), and single calls that are waited for (call)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from assay.kernel import address
from assay.worker import bound, channel, l2, load, seal, yardstick
from assay.worker.aftermath import Aftermath, Finding
from assay.worker.buffers import Buffers, last_cache
from assay.worker.execute import function_of, summaries, use_threads
from assay.worker.stopwatch import Around, Call, GraphReplay, HeldStream, HostClock, NotCapturable, Watch, call_time

if TYPE_CHECKING:
    from assay.backends import Backend

_MOST = 4096
"""Calls in a batch at most."""
_WARM = 3
_LEAD = {"cuda": 50e-6, "cpu": 3e-3}
"""Seconds of untimed calls before a cold batch, at most: they leave the cache as the kernel itself leaves it, not full
of the harness's own writes. In that time all of a cache is written back."""
_LONG = 10
"""Times that, from which a call is so long that what is in the cache before it makes no difference."""

_seal: seal.Seal | None = None
_batches: dict[str, int] = {}
"""Calls of a batch, by workload: the next round has as many sets at once."""
_kept: tuple[Callable[[], None], Watch, Any] | None = None
"""A batch of the last round, for `again`; its watch; what is open while it runs."""


@cache
def _watch(device: str, capture: bool) -> Watch:
    return HostClock() if device == "cpu" else GraphReplay() if capture else HeldStream()


@cache
def _stream(device: str) -> Any:
    """One for all rounds: memory freed on one stream is not given out on another."""
    return torch.cuda.Stream() if device == "cuda" else None


def timed(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """One round, or (with `activity`) the same calls under the device's own record of what ran."""
    global _kept
    _kept = None
    use_threads(message["threads"])
    try:
        return _round(message, arena.view(message["arena"]))
    except NotCapturable as error:
        return {"uncapturable": str(error)}
    except Finding as found:
        return {"finding": {"detector": found.detector, "what": str(found)}}
    finally:
        if message["device"] == "cuda" and _kept is None:
            torch.cuda.empty_cache()  # the next round's memory is fresh, and other kernels have room for theirs


def again(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """A cold batch of the last round, so many times, for the parent to time by its own clock. 0: nothing runs, which
    shows what asking costs; less: it is not needed any more."""
    global _kept
    assert _kept is not None, "no batch was kept"
    run, watch, entered = _kept
    if message["times"] < 0:
        _kept = None
        if not isinstance(watch, HostClock):
            torch.cuda.empty_cache()
        return {}
    with entered():
        for _ in range(message["times"]):
            run()
        watch.finish()
    return {}


def _round(message: dict[str, Any], memory: memoryview) -> dict[str, Any]:
    device = message["device"]
    watch, language = _watch(device, message["capture"]), _language(message)
    if message["kernel"] is None:
        with torch.cuda.stream(_stream(device)):
            return yardstick.measured(message, watch)
    _seal_before(message)

    def entered() -> ExitStack:
        stack = ExitStack()
        stack.enter_context(torch.cuda.stream(_stream(device)))
        stack.enter_context(language.on_current_stream())
        return stack

    with entered():
        if device == "cuda":
            l2.reset()
        buffers = Buffers(message, memory, _batches.get(message["workload"], 0))
        began = bound.now()
        call, artifacts = _kernel(message, buffers)
        call(0)
        watch.finish()
        first = (bound.now() - began) * 1e-9
        for i in range(1, _WARM + 1):
            call(i)
        watch.finish()
        if message.get("activity"):
            from assay.worker.activity import record

            return record(call, message["activity"], _stream(device))
        peak = {"peak_bytes": _peak(call)} if device == "cuda" and message["round"] == 0 else {}
        guess = watch.sample(call, 4, 2).seconds
        if guess < _LONG * _LEAD[device]:  # an interruption makes a short call look long, and its batches short
            guess = min(guess, *(watch.sample(call, place, 2).seconds for place in (6, 8)))
        batch = max(1, min(_MOST, math.ceil(watch.shortest_batch / max(guess, 1e-9))))
        lead = max(1, min(last_cache(device) // buffers.size, math.ceil(_LEAD[device] / max(guess, 1e-9)), _MOST))
        lead = lead if guess < _LONG * _LEAD[device] else 0
        _batches[message["workload"]] = batch + lead
        if batch + lead > buffers.count:
            del call
            buffers = Buffers(message, memory, batch + lead)
            call, _ = _kernel(message, buffers)
        lead = min(lead, buffers.count - 1)
        taken = _Round(message, buffers, call, watch, memory, guess, min(batch, buffers.count - lead), lead).run()
        if message["keep"]:
            _keep(watch, call, taken["batch"], entered)
    return {"first_call": first, "artifacts": artifacts, **peak, **taken}


def _peak(call: Call) -> int:
    """Bytes that PyTorch's allocator holds at the most during one warm call, beyond what it held before: results that
    the kernel returns are among them, its arguments are not."""
    bound.synchronize()
    before = bound.held_bytes()
    bound.reset_peak()
    call(0)
    bound.synchronize()
    return max(0, bound.peak_bytes() - before)


def _keep(watch: Watch, call: Call, batch: int, entered: Any) -> None:
    global _kept
    _kept = watch.runner(call, 0, batch), watch, entered


def _seal_before(message: dict[str, Any]) -> None:
    """Remember, before the kernel's file is imported, what it may not change; and the threads it is given."""
    global _seal
    if _seal is None:
        _language(message).prepare(message["mode"])
        _seal = seal.Seal()
    _seal.begin()


def _language(message: dict[str, Any]) -> Backend:
    from assay.backends import backend

    return backend(address(message["kernel"]["address"]).backend if message["kernel"] else "torch")


def _kernel(message: dict[str, Any], buffers: Buffers) -> tuple[Call, list[Any]]:
    kernel, op, function = function_of(message)
    prepared = []
    for index in range(buffers.count):
        tensors = {name: slab.tensor(index) for name, slab in buffers.slabs.items()}
        named = dict(message["attributes"])
        named |= {s["name"]: tensors[s["name"]] for s in (*message["outputs"], *message["scratch"])}
        keywords = load.keywords(kernel, op, named) | message["parameters"]
        if kernel.launches:
            keywords |= message["axes"]
        args = tuple(tensors[n] if n in message["present"] else None for n in op.inputs)
        prepared.append((args, keywords))
    language = _language(message)
    with language.launched() as started:
        language.invoke(function, *prepared[0])  # once by the backend's rules, which may refuse
    count = buffers.count
    if not kernel.returns:

        def call(i: int) -> Any:
            args, keywords = prepared[i % count]
            function(*args, **keywords)

        return call, summaries(started)

    def returning(i: int) -> Any:
        args, keywords = prepared[i % count]
        returned = function(*args, **keywords)
        if i in buffers.keep:
            buffers.returned[i] = returned

    return returning, summaries(started)


class _Round:
    """The samples of one round, and what is seen of the outputs on the way."""

    def __init__(
        self,
        message: dict[str, Any],
        buffers: Buffers,
        call: Call,
        watch: Watch,
        memory: memoryview,
        guess: float,
        batch: int,
        lead: int,
    ) -> None:
        self.message, self.buffers, self.call, self.watch = message, buffers, call, watch
        self.guess, self.batch, self.lead = guess, batch, lead
        self.samples = max(1, min(message["samples"], int(message["seconds"] / max(guess * batch, 1e-9))))
        self.after = Aftermath(message, buffers, memory)

    def run(self) -> dict[str, Any]:
        place = bound.below(self.buffers.count)  # every round begins elsewhere in the rotation
        cold, hot = [], []
        for left in range(self.samples, 0, -1):
            cold.append(self._cold(place, left))
            place += self.batch
        for left in range(self.samples, 0, -1):
            hot.append(self._hot(left))
        single = max(1, min(self.batch, math.ceil(50e-6 / max(self.guess, 1e-9))))
        calls = [call_time(self.call, self.watch.finish, single) for _ in range(self.samples)]
        assert _seal is not None
        if wrong := _seal.finding() or self._warm_cache():
            raise Finding(wrong["detector"], wrong["what"])
        return {
            "cold": [s.seconds for s in cold],
            "busy": [s.busy for s in cold] if cold[0].busy is not None else [],
            "hot": [s.seconds for s in hot],
            "call": calls,
            "batch": self.batch,
            "single": single,
            "sets": self.buffers.count,
            "cold_enough": self.buffers.cold,
            "held": all(s.held for s in (*cold, *hot)),
            "sm_hz": [s.sm_hz for s in cold],
            "method": self.watch.method,
            "fetched": self.after.fetched,
            "cache": last_cache(self.message["device"]),
        }

    def _cold(self, place: int, left: int) -> Any:
        buffers, start = self.buffers, place % self.buffers.count

        def before() -> None:
            buffers.refresh()
            for i in range(place - self.lead, place):
                self.call(i)

        # The batch's own sets are written first, all others after them: they have left the cache when the batch begins.
        parts = [(a, b) for a, b in ((start, buffers.count), (0, start)) if a < b]
        return self._sample("cold", place, self.batch, left, parts, before, self.call)

    def _hot(self, left: int) -> Any:
        def before() -> None:
            self.buffers.refresh()
            if not self.lead:
                return
            kept, self.buffers.keep = self.buffers.keep, set()  # what this call returns is not the batch's
            self.call(0)
            self.buffers.keep = kept
            self.buffers.poison()

        return self._sample("hot", 0, self.batch, left, [(0, 1)], before, lambda i: self.call(0))

    def _sample(
        self, kind: str, place: int, count: int, left: int, parts: Any, before: Callable[[], None], call: Call
    ) -> Any:
        calls = count if kind == "cold" else 1

        def prepare() -> None:
            if self.message["device"] == "cuda":
                l2.reset()
            self.buffers.plan(place, calls, *parts)

        self.after.begin(place, calls)
        sample = self.watch.sample(call, place, count, Around(prepare, before, self.after.at_once))
        self.after.end(kind, kind in self.message["fetch"] and bound.below(left) == 0)
        return sample

    def _warm_cache(self) -> dict[str, str] | None:
        if self.message["device"] != "cuda" or not (kept := l2.set_aside()):
            return None
        l2.reset()
        if l2.set_aside() == kept:  # not the kernel's: it cannot be given back
            return None
        what = f"the kernel set {kept >> 10} KiB of the L2 cache aside for lines that stay: its buffers are not cold"
        return {"detector": "cache", "what": what}
