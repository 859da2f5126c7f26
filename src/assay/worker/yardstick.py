"""Inside a worker: times the fastest copy, read and write that we can write, like a kernel. Several forms of each are
tried once for every size; the fastest is the yardstick of all later rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from assay.errors import AssayError
from assay.worker.buffers import SETS, beyond_cache, last_cache, room
from assay.worker.questions import TimeYardsticks, Yardstick, Yardsticks
from assay.worker.stopwatch import Around, Call, Watch

COPY, READ, WRITE = "copy", "read", "write"
INSTANCES = {
    COPY: ((1, 0), (2, 0), (4, 0), (1, 1), (2, 1), (4, 1), (8, 1), (4, 2)),
    READ: ((4, 0), (8, 0), (4, 1), (8, 1), (4, 2)),
    WRITE: ((1, 0), (2, 0), (4, 0), (4, 1)),
}
"""Instances of the CUDA source: accesses in flight, and the index of the hints."""
_HINTS = ("", ", streaming", ", streaming, 256-byte fetches")
_THREADS = 256
_WORD = 16
_TRIES = 3
_MOST = 4096
_LARGEST = 1 << 30
"""The most bytes of a read or a write: larger ones have the same speed."""

Form = Callable[[Any, int], Call]
"""Maps memory (bytes, a multiple of 16) and the bytes of a call to the i-th call, which goes on in that memory."""
_fastest: dict[tuple[str, str, int], str] = {}
"""The name of the fastest form, by device, kind and size."""
_ranked: dict[tuple[str, str, int], list[str]] = {}
"""The names of all forms, the fastest first, by device, kind and size class. Which of the best wins depends on the
exact size: the driver's copy loses a third of its speed if the halves are not aligned to 4 KiB."""
_BEST = 3


def measured(request: TimeYardsticks, watch: Watch) -> Yardsticks:
    """Time one round: the copy of as many bytes as the op must move, half of them read and half written. On a GPU,
    reads and writes are larger than the cache; on a CPU, they are timed only if a single call far exceeds its cache,
    since otherwise nothing says from where it reads."""
    round_, moved = request.round, max(1, -(-request.bytes // (2 * _WORD))) * 2 * _WORD
    beyond, cached = beyond_cache(round_.device), last_cache(round_.device)
    sizes = {COPY: moved}
    if round_.device == "cuda":
        sizes |= dict.fromkeys((READ, WRITE), min(max(moved, beyond), max(beyond, _LARGEST)) // _WORD * _WORD)
    elif moved > request.beyond_cache * cached:
        sizes |= dict.fromkeys((READ, WRITE), min(moved, max(_LARGEST, 4 * cached)) // _WORD * _WORD)
    most = max(sizes.values())
    count = max(2, min(beyond // most + 2, room(round_) // most))
    memory = torch.zeros(max(most * count, beyond + most) // _WORD * _WORD, dtype=torch.uint8, device=round_.device)
    if round_.device == "cuda":
        memory.random_()  # zeros cost less power, and may be moved at higher clocks
    taken: dict[str, Yardstick] = {}
    clocks: list[float | None] = []
    for kind, size in sizes.items():
        name, call = _chosen(kind, round_.device, memory, size, watch)
        samples = _samples(call, watch, round_.samples if kind == COPY else round_.others, round_.seconds)
        taken[kind] = Yardstick([s.seconds for s in samples], size, name)
        if kind == COPY:
            clocks = [s.sm_hz for s in samples]
    return Yardsticks(taken[COPY], clocks, cached, taken.get(READ), taken.get(WRITE))


def _samples(call: Call, watch: Watch, count: int, seconds: float) -> list[Any]:
    """Time batches one after another, each on the memory behind the last one's."""
    guess = min(watch.sample(call, 0, 2).seconds for _ in range(2))
    batch = max(1, min(_MOST, math.ceil(watch.shortest_batch / max(guess, 1e-9))))
    few = max(1, min(count, int(seconds / max(guess * batch, 1e-9))))

    taken = []
    for first in range(batch, (few + 1) * batch, batch):

        def lead(first: int = first) -> None:
            for i in range(first - max(1, batch // 4), first):
                call(i)

        taken.append(watch.sample(call, first, batch, Around(before=lead)))
    return taken


def _chosen(kind: str, device: str, memory: Any, size: int, watch: Watch) -> tuple[str, Call]:
    forms = {name: form(memory, size) for name, form in _forms(kind, device).items()}
    exact, alike = (device, kind, size), (device, kind, size.bit_length())
    if exact not in _fastest:
        taken = {}
        for name in _ranked.get(alike, list(forms))[: _BEST if alike in _ranked else None]:
            forms[name](0)
            watch.finish()
            taken[name] = min(s.seconds for s in _samples(forms[name], watch, _TRIES, 0.02))
        ranked = sorted(taken, key=lambda name: taken[name])
        _ranked.setdefault(alike, ranked)
        _fastest[exact] = ranked[0]
    return _fastest[exact], forms[_fastest[exact]]


@cache
def _forms(kind: str, device: str) -> dict[str, Form]:
    """Return PyTorch's own forms, and on a GPU ours if CUDA C++ compiles."""
    sink = torch.zeros(16, dtype=torch.int64, device=device)

    def paired(act: Callable[[Any, Any], Any]) -> Form:
        def form(memory: Any, size: int) -> Call:
            pairs = [m.view(2, -1) for m in _parts(memory, size)]
            return lambda i: act(pairs[i % len(pairs)][0], pairs[i % len(pairs)][1])

        return form

    def single(act: Callable[[Any], Any]) -> Form:
        def form(memory: Any, size: int) -> Call:
            parts = _parts(memory, size)
            return lambda i: act(parts[i % len(parts)])

        return form

    forms: dict[str, Form] = {
        COPY: {
            "torch copy_": paired(lambda x, y: y.copy_(x)),
            # From 2 GiB on the driver's own copy is a third slower than what kernels reach.
            "torch bitwise_not": paired(lambda x, y: torch.bitwise_not(x, out=y)),
        },
        READ: {
            "torch sum": single(lambda x: torch.sum(x.view(torch.float32), dim=0, out=_scalar(device, torch.float32))),
            "torch amax": single(lambda x: torch.amax(x, dim=0, out=_scalar(device, torch.int64))),
        },
        WRITE: {"torch fill_": single(lambda y: y.fill_(1)), "torch zero_": single(lambda y: y.zero_())},
    }[kind]
    if device == "cpu":
        forms.pop("torch bitwise_not", None)
        return forms
    return forms | _cuda_forms(kind, sink)


@cache
def _scalar(device: str, dtype: Any) -> Any:
    return torch.zeros((), dtype=dtype, device=device)


def _parts(memory: Any, size: int) -> list[Any]:
    """Return as many pieces of `size` bytes as there are, as 64-bit words."""
    count = min(memory.numel() // size, SETS)
    return [memory[at : at + size].view(torch.int64) for at in range(0, count * size, size)]


def _cuda_forms(kind: str, sink: Any) -> dict[str, Form]:
    try:
        from assay.backends.cuda import Source

        source = Source(Path(__file__).with_name("yardstick.cu"))
        unroll, hint = INSTANCES[kind][0]
        source[f"{kind}<{unroll}, {hint}>"](1, _THREADS, *_arguments(kind, sink, sink, 0))  # raises if nothing compiles
    except (ImportError, AssayError):
        return {}
    return {
        f"CUDA, 16 bytes × {unroll}{_HINTS[hint]}": _cuda_form(kind, source[f"{kind}<{unroll}, {hint}>"], unroll, sink)
        for unroll, hint in INSTANCES[kind]
    }


def _arguments(kind: str, part: Any, sink: Any, words: int) -> tuple[Any, ...]:
    if kind == COPY:
        half = part.view(2, -1)
        return half[0], half[1], words // 2
    return (part, sink, words, -1) if kind == READ else (part, words)


def _cuda_form(kind: str, function: Any, unroll: int, sink: Any) -> Form:
    def form(memory: Any, size: int) -> Call:
        parts = [_arguments(kind, part, sink, size // _WORD) for part in _parts(memory, size)]
        words = size // _WORD // (2 if kind == COPY else 1)
        grid = max(1, -(-words // (_THREADS * unroll)))
        return lambda i: function(grid, _THREADS, *parts[i % len(parts)])

    return form
