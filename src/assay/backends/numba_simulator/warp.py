"""Warps. The simulator has no shuffles, votes or `syncwarp`; here the threads in the mask exchange their values when
all of them have arrived. It is an error if a thread in the mask has left the kernel (a GPU may hang); the value of a
lane outside the mask is unwritten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator import kernelapi

from assay.backends.unwritten import unwritten

_ALL = 0xFFFFFFFF


class _Meeting:
    """Exchanges values between the lanes of one warp and mask."""

    def __init__(self, lanes: dict[int, Any]) -> None:
        self.lanes, self.changed = lanes, threading.Condition()
        self.values: dict[int, Any] = {}
        self.given: dict[int, Any] = {}
        self.round = 0

    def exchange(self, lane: int, value: Any) -> dict[int, Any]:
        with self.changed:
            self.values[lane] = value
            current = self.round
            if len(self.values) == len(self.lanes):
                self.given, self.values, self.round = self.values, {}, self.round + 1
                self.changed.notify_all()
            while self.round == current:
                self.changed.wait(0.05)
                thread: Any = threading.current_thread()
                gone = [n for n, t in self.lanes.items() if n not in self.values and _has_ended(t)]
                if self.round == current and (gone or thread.abort):
                    raise RuntimeError(
                        f"lane {gone} left the kernel before the warp's exchange that its mask names it for"
                    )
            return self.given


def _has_ended(thread: threading.Thread) -> bool:
    return thread.ident is not None and not thread.is_alive()  # one without an ident was not started yet


def patch() -> None:
    thread_type: Any = simulator.BlockThread
    begin = thread_type.__init__

    def init(self: Any, f: Any, manager: Any, *rest: Any) -> None:
        begin(self, f, manager, *rest)
        manager.__dict__.setdefault("threads_by_id", {})[self.thread_id] = self

    thread_type.__init__ = init
    module: Any = kernelapi.FakeCUDAModule
    module.shfl_sync = lambda self, mask, value, source: _shuffle(mask, value, lambda lane: source % 32)
    module.shfl_up_sync = lambda self, mask, value, delta: _shuffle(
        mask, value, lambda lane: lane - delta if lane >= delta else lane
    )
    module.shfl_down_sync = lambda self, mask, value, delta: _shuffle(
        mask, value, lambda lane: lane + delta if lane + delta < 32 else lane
    )
    module.shfl_xor_sync = lambda self, mask, value, lanes: _shuffle(mask, value, lambda lane: (lane ^ lanes) % 32)
    module.all_sync = lambda self, mask, predicate: all(_exchanged(mask, bool(predicate)).values())
    module.any_sync = lambda self, mask, predicate: any(_exchanged(mask, bool(predicate)).values())
    module.eq_sync = lambda self, mask, predicate: len(set(_exchanged(mask, bool(predicate)).values())) == 1
    module.ballot_sync = lambda self, mask, predicate: sum(
        1 << n for n, p in _exchanged(mask, bool(predicate)).items() if p
    )
    module.match_any_sync = lambda self, mask, value: sum(
        1 << n for n, v in _exchanged(mask, value).items() if v == value
    )
    module.match_all_sync = _match_all
    module.syncwarp = lambda self, mask=_ALL: _exchanged(mask, None) and None
    module.activemask = lambda self: sum(1 << n for n, t in _present().items() if not _has_ended(t))
    module.lanemask_lt = lambda self: (1 << _lane()) - 1


def _lane() -> int:
    thread: Any = threading.current_thread()
    return int(thread.thread_id) % 32


def _present() -> dict[int, Any]:
    """Return the threads of this thread's warp, by lane. The block starts them one after another, so wait for all."""
    thread: Any = threading.current_thread()
    manager = thread._manager
    first, size = thread.thread_id // 32 * 32, int(np.prod(manager._block_dim))
    count = min(32, size - first)
    while not all(first + n in manager.threads_by_id for n in range(count)):
        threading.Event().wait(0.001)
    return {n: manager.threads_by_id[first + n] for n in range(count)}


_meetings = threading.Lock()


def _exchanged(mask: int, value: Any) -> dict[int, Any]:
    thread: Any = threading.current_thread()
    lane, mask = _lane(), int(mask) & _ALL
    if not mask >> lane & 1:
        raise RuntimeError(f"lane {lane} takes part in a warp's exchange whose mask {mask:#x} does not name it")
    lanes = {n: t for n, t in _present().items() if mask >> n & 1}
    with _meetings:
        meetings = thread._manager.__dict__.setdefault("meetings", {})
        meeting = meetings.setdefault((thread.thread_id // 32, mask), _Meeting(lanes))
    return dict(meeting.exchange(lane, value))


def _shuffle(mask: int, value: Any, source: Callable[[int], Any]) -> Any:
    given = _exchanged(mask, value)
    lane = int(source(_lane()))
    if lane in given:
        return given[lane]
    return unwritten(getattr(value, "dtype", np.dtype(type(value))), (1,))[0]


def _match_all(self: Any, mask: int, value: Any) -> tuple[int, bool]:
    given = _exchanged(mask, value)
    same = len(set(given.values())) == 1
    return (sum(1 << n for n in given) if same else 0), same
