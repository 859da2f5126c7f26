"""Inside a worker: runs one round of a benchmark on fresh buffers. It has batches that rotate over more memory than any
cache holds (cold), batches on the same buffers (hot), and single calls, each waited for (call)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, cast

import torch

from assay.backends import backend
from assay.kernel import Kernel
from assay.worker import bound, channel, l2, load, seal, yardstick
from assay.worker.aftermath import Aftermath, Finding
from assay.worker.buffers import Buffers, last_cache
from assay.worker.execute import function_of, summaries, use_threads
from assay.worker.preparation import NOTHING, Kept, Preparation
from assay.worker.questions import (
    Activity,
    Done,
    Fetched,
    Observe,
    Open,
    Prepare,
    Prepared,
    Repeat,
    Round,
    Summary,
    Time,
    Timed,
    TimeYardsticks,
    Uncapturable,
    Yardsticks,
)
from assay.worker.questions import Finding as Wrong
from assay.worker.stopwatch import Around, Call, GraphReplay, HeldStream, HostClock, NotCapturable, Watch, call_time

_MOST = 4096
"""The most calls in a batch."""
_WARM = 3
_WAKING_BYTES, _WAKING_NS = 1 << 28, 100_000_000
_LEAD = {"cuda": 50e-6, "cpu": 3e-3}
"""The most seconds of untimed calls before a cold batch. They leave the cache as the kernel itself leaves it, not full
of the harness's own writes; in that time all of a cache is written back."""
_LONG = 10
"""The multiple of that time from which a call is so long that the contents of the cache before it do not matter."""

_seal: seal.Seal | None = None
_batches: dict[str, int] = {}
"""Calls of a batch and of its lead, by workload, so that the next round has as many sets at once."""
_long: dict[str, float] = {}
"""Seconds of a call on a CPU, by workload, if its calls are long."""
_prepared: dict[str, Kept] = {}
"""Bytes of a preparation, by workload."""
_kept: tuple[Callable[[], None], Watch, Any] | None = None
"""A batch of the last round for `again`, its watch, and the context in which it runs."""


@cache
def _watch(device: str, capture: bool) -> Watch:
    return HostClock() if device == "cpu" else GraphReplay() if capture else HeldStream()


@cache
def _stream(device: str) -> Any:
    """Return one stream for all rounds, because memory freed on one stream is not given out on another."""
    return torch.cuda.Stream() if device == "cuda" else None


def timed(request: Time, arena: channel.Arena) -> Timed | Uncapturable | Wrong:
    """Time one round."""
    try:
        with _alone(request.round):
            return _round(request, arena.view(request.call.arena))
    except NotCapturable as error:
        return Uncapturable(str(error))
    except Finding as finding:
        return Wrong(finding.detector, str(finding))


def opened(request: Open, arena: channel.Arena) -> Done:
    """Create the context of the device."""
    if request.device == "cuda":
        torch.zeros(1, device="cuda")
    return Done()


def prepared(request: Prepare, arena: channel.Arena) -> Prepared:
    """Build the kernel and call it a few times on one set of buffers."""
    time = request.time
    with _alone(time.round):
        _seal_before(time)
        with _entered(time.call.kernel, time.round.device):
            buffers = Buffers(time, arena.view(time.call.arena), most=1)
            if time.round.device == "cuda" and backend(time.call.kernel.address.backend).tunes_itself:
                _wake()
            return Prepared(_warm(time, buffers).first)


def _wake() -> None:
    """Keep the device's memory busy until its clocks are up: a kernel that chooses among its forms by timing them would
    time the first ones on an idle device."""
    buffer = torch.empty(_WAKING_BYTES, dtype=torch.uint8, device="cuda")
    until = bound.now() + _WAKING_NS
    while bound.now() < until:
        for _ in range(20):
            buffer.bitwise_not_()
        bound.synchronize()


def observed(request: Observe, arena: channel.Arena) -> Activity:
    """Run the calls of a round under the device's own record of what ran."""
    from assay.worker.activity import record

    time = request.time
    _seal_before(time)
    with _alone(time.round), _entered(time.call.kernel, time.round.device):
        call = _warm(time, _fresh_buffers(time, arena.view(time.call.arena))).call
        return Activity(**record(call, request.calls, _stream(time.round.device)))


def yardsticks(request: TimeYardsticks, arena: channel.Arena) -> Yardsticks:
    """Time the fastest copy, read and write."""
    device = request.round.device
    with _alone(request.round), torch.cuda.stream(_stream(device)):
        return yardstick.measured(request, _watch(device, request.round.capture))


def again(request: Repeat, arena: channel.Arena) -> Done:
    """Run a cold batch of the last round as often as requested; a negative number drops it."""
    global _kept
    assert _kept is not None, "no batch was kept"
    run, watch, entered = _kept
    if request.times < 0:
        _kept = None
        if not isinstance(watch, HostClock):
            torch.cuda.empty_cache()
        return Done()
    with entered():
        for _ in range(request.times):
            run()
        watch.finish()
    return Done()


@contextmanager
def _alone(round_: Round) -> Iterator[None]:
    """Keep nothing of the last round, and of this one only a batch that the parent wants again: the next round's memory
    is fresh, and other kernels have room for their buffers."""
    global _kept
    _kept = None
    use_threads(round_.threads)
    try:
        yield
    finally:
        if round_.device == "cuda" and _kept is None:
            torch.cuda.empty_cache()


def _entered(kernel: Kernel, device: str) -> ExitStack:
    """Return an open context in which calls go to the stream of all rounds."""
    stack = ExitStack()
    stack.enter_context(torch.cuda.stream(_stream(device)))
    stack.enter_context(backend(kernel.address.backend).on_current_stream())
    return stack


def _fresh_buffers(request: Time, memory: memoryview) -> Buffers:
    if request.round.device == "cuda":
        l2.reset()
    return Buffers(request, memory, _batches.get(request.workload, 0), kept=_prepared.get(request.workload, NOTHING))


class _Warmed(NamedTuple):
    """A kernel that was called a few times."""

    call: Call
    artifacts: list[Summary]
    first: float
    """Seconds of building it and of its first call."""
    guess: float
    """Seconds of a call on a CPU if its calls are long; else 0."""


def _warm(request: Time, buffers: Buffers) -> _Warmed:
    """Call the kernel on these buffers a few times. On a CPU, if its calls are long, three times in the first round and
    once in each later one."""
    watch = _watch(buffers.device, request.round.capture)
    began = bound.now()
    call, artifacts = _kernel(request, buffers)
    called = bound.now()
    if request.workload in _long and _is_long(seconds := (called - began) * 1e-9, "cpu"):
        return _Warmed(call, artifacts, seconds, min(seconds, _long[request.workload]))
    call(0)
    watch.finish()
    ended = bound.now()
    first = (ended - began) * 1e-9
    call(1)
    watch.finish()
    second = (bound.now() - ended) * 1e-9
    if buffers.device == "cpu" and _is_long(second, "cpu"):
        _long[request.workload] = second
        return _Warmed(call, artifacts, first, second)
    for i in range(2, _WARM + 1):
        call(i)
    watch.finish()
    return _Warmed(call, artifacts, first, 0.0)


def _is_long(seconds: float, device: str) -> bool:
    """True if a call is so long that neither the contents of the cache before it nor an interruption matters."""
    return seconds >= _LONG * _LEAD[device]


def _guess(call: Call, watch: Watch, device: str) -> float:
    """Estimate the seconds of a call. An interruption makes a short call look long, and its batches short."""
    guess = watch.sample(call, 4, 2).seconds
    return guess if _is_long(guess, device) else min(guess, *(watch.sample(call, i, 2).seconds for i in (6, 8)))


def _round(request: Time, memory: memoryview) -> Timed:
    global _kept
    kernel, device = request.call.kernel, request.round.device
    watch = _watch(device, request.round.capture)
    _seal_before(request)
    with _entered(kernel, device):
        buffers = _fresh_buffers(request, memory)
        call, artifacts, first, guess = _warm(request, buffers)
        peak = _peak(call) if device == "cuda" and request.number == 0 else None
        guess = guess or _guess(call, watch, device)
        batch = max(1, min(_MOST, math.ceil(watch.shortest_batch / max(guess, 1e-9))))
        lead = max(1, min(last_cache(device) // buffers.size, math.ceil(_LEAD[device] / max(guess, 1e-9)), _MOST))
        lead = 0 if _is_long(guess, device) else lead
        _batches[request.workload] = batch + lead
        if batch + lead > buffers.count:
            del call
            buffers = Buffers(request, memory, batch + lead, kept=_prepared.get(request.workload, NOTHING))
            call, _ = _kernel(request, buffers)
        lead = min(lead, buffers.count - 1)
        samples = _Samples(request, buffers, call, watch, memory, guess, min(batch, buffers.count - lead), lead)
        taken = samples.taken(first, artifacts, peak)
        if request.keep:
            _kept = watch.runner(call, 0, taken.batch), watch, partial(_entered, kernel, device)
    return taken


def _peak(call: Call) -> int:
    """Return the most bytes that PyTorch's allocator holds during one warm call, beyond what it held before. They
    include results that the kernel returns, but not its arguments."""
    bound.synchronize()
    before = bound.held_bytes()
    bound.reset_peak()
    call(0)
    bound.synchronize()
    return max(0, bound.peak_bytes() - before)


def _seal_before(request: Time) -> None:
    """Record, before the kernel's file is imported, what it may not change, and the threads it is given."""
    global _seal
    if _seal is None:
        load.prepare(request.call.kernel, request.call.mode)
        _seal = seal.Seal()
    _seal.begin()


def _kernel(request: Time, buffers: Buffers) -> tuple[Call, list[Summary]]:
    op, function = function_of(request.call)
    prepared = []
    for index in range(buffers.count):
        tensors = {name: slab.tensor(index) for name, slab in buffers.slabs.items()}
        prepared.append(load.arguments(request.call, op, tensors))
    if isinstance(function, load.Preparing):
        buffers.preparation = Preparation(function, prepared)
        _prepared[request.workload] = buffers.preparation.kept
        prepared, function = buffers.preparation.arguments(), function.run
    language = backend(request.call.kernel.address.backend)
    with language.launched() as started:
        language.invoke(function, *prepared[0])  # once by the backend's rules, which may refuse
    count = buffers.count

    def call(i: int) -> Any:
        args, keywords = prepared[i % count]
        function(*args, **keywords)

    def returning(i: int) -> Any:
        args, keywords = prepared[i % count]
        returned = function(*args, **keywords)
        if buffers.alive is not None:
            buffers.alive.append(returned)
        if i in buffers.keep:
            buffers.returned[i] = returned

    return returning if request.call.kernel.returns else call, summaries(started)


class _Samples:
    """Takes the samples of one round, and checks the outputs meanwhile."""

    def __init__(
        self,
        request: Time,
        buffers: Buffers,
        call: Call,
        watch: Watch,
        memory: memoryview,
        guess: float,
        batch: int,
        lead: int,
    ) -> None:
        self.request, self.buffers, self.call, self.watch = request, buffers, call, watch
        self.guess, self.batch, self.lead = guess, batch, lead
        self.count = max(1, min(request.round.samples, int(request.round.seconds / max(guess * batch, 1e-9))))
        self.after = Aftermath(request, buffers, memory)

    def taken(self, first_call: float, artifacts: list[Summary], peak_bytes: int | None) -> Timed:
        place = bound.below(self.buffers.count)  # every round begins elsewhere in the rotation
        cold, hot = [], []
        for left in range(self.count, 0, -1):
            cold.append(self._cold(place, left))
            place += self.batch
        others = min(self.count, self.request.round.others)
        for left in range(others, 0, -1):
            hot.append(self._hot(left))
        single = max(1, min(self.batch, math.ceil(50e-6 / max(self.guess, 1e-9))))
        calls = [self._single(single) for _ in range(others)]
        assert _seal is not None
        if wrong := _seal.finding() or self._warm_cache():
            raise Finding(*wrong)
        return Timed(
            first_call=first_call,
            artifacts=artifacts,
            cold=[s.seconds for s in cold],
            busy=[s.busy for s in cold if s.busy is not None],
            hot=[s.seconds for s in hot],
            call=calls,
            batch=self.batch,
            single=single,
            sets=self.buffers.count,
            cold_enough=self.buffers.cold,
            held=all(s.held for s in (*cold, *hot)),
            sm_hz=[s.sm_hz for s in cold],
            method=self.watch.method,
            fetched=cast(dict[Any, Fetched], self.after.fetched),
            cache=last_cache(self.buffers.device),
            peak_bytes=peak_bytes,
            prepared_bytes=_prepared[self.request.workload].bytes if self.buffers.preparation else None,
        )

    def _cold(self, place: int, left: int) -> Any:
        buffers, start = self.buffers, place % self.buffers.count

        def before() -> None:
            buffers.refresh()
            self.after.clear()
            for i in range(place - self.lead, place):
                self.call(i)
            self.after.at_start()

        # The batch's own sets are written first: all others, which are written after them, evict them from the cache.
        parts = [(a, b) for a, b in ((start, buffers.count), (0, start)) if a < b]
        return self._sample("cold", place, self.batch, left, parts, before, self.call)

    def _hot(self, left: int) -> Any:
        def before() -> None:
            self.buffers.refresh()
            self.after.clear()
            if not self.lead:
                return
            captured, self.buffers.returned = self.buffers.returned, {}  # this call's return value is not the batch's
            self.call(0)
            if bound.below(2):
                self.buffers.poison()
            else:
                self.after.spoil()
            self.buffers.returned = captured

        return self._sample("hot", 0, self.batch, left, [(0, 1)], before, lambda i: self.call(0))

    def _single(self, count: int) -> float:
        self.after.spoil()
        self.watch.finish()
        seconds = call_time(self.call, self.watch.finish, count)
        if self.after.still_spoiled():
            self.buffers.change_poison()
            self.after.spoil()
            call_time(self.call, self.watch.finish, 1)
            if self.after.still_spoiled():
                what = (
                    "a single call left its outputs unwritten: it does nothing, or takes an earlier result for its own"
                )
                raise Finding("unwritten", what)
        return seconds

    def _sample(
        self, kind: str, place: int, count: int, left: int, parts: Any, before: Callable[[], None], call: Call
    ) -> Any:
        calls = count if kind == "cold" else 1

        def prepare() -> None:
            if self.buffers.device == "cuda":
                l2.reset()
            self.buffers.plan(place, calls, *parts, lead=self.lead)

        self.after.begin(place, calls)
        self.buffers.alive = [] if kind == "cold" and self.buffers.device == "cuda" else None
        sample = self.watch.sample(call, place, count, Around(prepare, before, self.after.at_once))
        self.after.end(kind, kind in self.request.fetch and bound.below(left) == 0)
        return sample

    def _warm_cache(self) -> tuple[str, str] | None:
        """Return the detector and its finding if the kernel set part of the L2 cache aside, else None."""
        if self.buffers.device != "cuda" or not (kept := l2.set_aside()):
            return None
        l2.reset()
        if l2.set_aside() == kept:  # not the kernel's: it cannot be released
            return None
        what = f"the kernel set {kept >> 10} KiB of the L2 cache aside for lines that stay: its buffers are not cold"
        return "cache", what
