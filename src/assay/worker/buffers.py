"""Inside a worker: the tensors that timed calls work on, in as many sets as a batch has calls and as exceed every
cache. Before every batch the inputs get other values and the outputs are poisoned; after it, some elements of every
call's outputs are read to see whether all of them were written, and in time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from assay.worker import bound, change
from assay.worker.bits import integer, signed
from assay.worker.preparation import NOTHING, Kept, Preparation
from assay.worker.questions import Fetched, Round, Time
from assay.worker.request import TensorSpec

_COLD = {"cuda": 4.0, "cpu": 1.25}
"""The multiple of the last cache that the rotated buffers together must exceed. A CPU's cache keeps what was used last,
and on a shared machine it is far larger than one process's share of it."""
SETS = 8192
"""The most sets in a rotation. Workloads too small to fill a cache with so many are not quite cold, and recorded so."""
_ALIGN = 256
"""Bytes: CUDA's natural alignment of an allocation."""
_LOOKS = 64
"""Elements of every call's outputs that are checked right after a batch."""


def last_cache(device: str) -> int:
    """Return the bytes of the cache that all cores or multiprocessors share."""
    if device == "cuda":
        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    sizes = [1 << 20]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        text = (index / "size").read_text().strip()
        sizes.append(int(text[:-1]) << {"K": 10, "M": 20}[text[-1]])
    return max(sizes)


def beyond_cache(device: str) -> int:
    """Return how many bytes no cache keeps from one pass over them to the next."""
    return int(_COLD[device] * last_cache(device))


class Slab:
    """One tensor of a workload for all sets, in one allocation. The copies are a little more than a tensor apart, from
    an offset that changes with every round."""

    def __init__(self, spec: TensorSpec, count: int, device: str, shift: int) -> None:
        self.shape, self.strides, self.length = spec.shape, spec.strides, spec.elements
        self.step = -(-(spec.span + spec.offset * spec.itemsize) // _ALIGN) * _ALIGN // spec.itemsize
        self.first = shift * _ALIGN // spec.itemsize + spec.offset
        size = self.first + count * self.step + _ALIGN
        self.flat = bound.empty(size, dtype=getattr(torch, spec.dtype), device=device)
        self.bits = bound.view(self.flat, integer(spec.itemsize))

    def tensor(self, index: int) -> Any:
        return bound.as_strided(self.flat, self.shape, self.strides, self.first + index * self.step)

    def every(self, start: int, step: int, stop: int) -> Any:
        """Return the tensors start, start + step, … before stop as one tensor with an additional first dimension."""
        return bound.as_strided(
            self.flat,
            (len(range(start, stop, step)), *self.shape),
            (step * self.step, *self.strides),
            self.first + start * self.step,
        )

    def poison(self, pattern: int, start: int, stop: int) -> None:
        """Fill the tensors from start to before stop with a bit pattern."""
        held = self.bits[self.first + start * self.step : self.first + stop * self.step]
        bound.fill_(held, signed(pattern, self.bits.element_size()))

    def positions(self, sets: Any, elements: Any) -> Any:
        """Return the indices in the allocation of these elements, given by number, of these sets, set by set."""
        inside, rest = 0 * elements, elements
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            inside, rest = inside + rest % size * stride, rest // size
        return bound.flatten(self.first + sets.unsqueeze(1) * self.step + inside.unsqueeze(0))


def room(round_: Round) -> int:
    """Return the bytes that all sets together may take."""
    most = round_.most_bytes
    return min(most, int(0.5 * torch.cuda.mem_get_info()[0])) if round_.device == "cuda" else most


Look = tuple[TensorSpec, Slab, Any]
"""The indices of some of an output's elements in its allocation."""


@dataclass(frozen=True)
class Turn:
    """One batch's values and poison, computed and sent to the device before the batch is queued."""

    parts: tuple[tuple[int, int], ...]
    """Ranges of sets that are renewed, in the order in which they are written."""
    shift: int
    """Set i holds the drawn values i + shift, modulo their number."""
    seed: int
    """The seed of the changed elements."""
    poison: int
    first: int
    calls: int
    puts: list[tuple[Slab, Any, Any]]
    """Changed elements: their indices in the allocation, and their bits."""
    looks: list[Look]
    """Elements of the outputs to check after the batch, as many for each call."""
    idle: list[Look]
    """Elements of outputs that neither the batch nor the calls that lead it use."""
    used: tuple[int, ...] = ()
    """Renewed sets that calls will use: those of the batch, then those of the calls that lead it."""


class Buffers:
    """Sets of all tensors of a workload, each at addresses of its own."""

    def __init__(
        self, request: Time, memory: memoryview, calls: int = 0, most: int = SETS, kept: Kept = NOTHING
    ) -> None:
        """Make at least `calls` and at most `most` sets if memory allows. `kept`: sizes of a preparation, by set."""
        call, self.device = request.call, request.round.device
        beyond = beyond_cache(self.device)
        self.size = max(1, sum(spec.span for spec in call.tensors))
        read = max(1, kept.least_read(self.size))
        wanted = beyond // read + 2
        fitting = room(request.round) // (self.size + kept.bytes)
        self.count = min(most, max(2, min(max(wanted, calls), fitting, SETS)))
        self.cold = self.count >= wanted or read > beyond
        self.variations, self.changeable = request.variations, request.changeable
        rng = random.Random(request.number)
        self.slabs = {s.name: Slab(s, self.count, self.device, rng.randrange(1, 256)) for s in call.tensors}
        self.inputs, self.outputs = call.inputs, call.outputs
        self._values = {s.name: [_uploaded(request, s, v, memory) for v in range(self.variations)] for s in self.inputs}
        near = all(v.device.type == self.device for values in self._values.values() for v in values)
        self._rotates = self.variations > 1 and near  # values on the host would have to be copied in every batch
        self._made: dict[str, tuple[Any, Any]] = {}
        """Sets and elements that hold other values than those drawn."""
        self.turn = Turn(((0, self.count),), 0, 0, 0, 0, 0, [], [], [])
        self._load(self.inputs)
        self.preparation: Preparation | None = None
        self.returned: dict[int, Any] = {}
        """Values returned by the calls in `keep`."""
        self.keep: set[int] = set()
        self.alive: list[Any] | None = None
        """Values returned by all calls of a cold batch, kept so that no call reuses memory that is in the cache."""

    def fetched(self, index: int) -> Fetched:
        """Return what the parent must know of a call to judge it."""
        turn = self.turn
        return Fetched((index + turn.shift) % self.variations, turn.seed, index, self.count, turn.poison)

    def plan(self, first: int, calls: int, *parts: tuple[int, int], lead: int = 0) -> None:
        """Choose what the sets in these ranges will hold in the next batch: other values than in the last one, changes
        that no batch had before, and a random poison. `lead` calls come before the batch."""
        shift = self.turn.shift
        if self._rotates:
            shift = (shift + 1 + bound.below(self.variations - 1)) % self.variations
        seed = bound.below(1 << 48)
        sets = torch.cat([torch.arange(start, stop) for start, stop in parts])
        puts = []
        for number, spec in enumerate(self.inputs):
            name, slab = spec.name, self.slabs[spec.name]
            if not self._rotates and name in self._made:
                made, elements = self._made[name]
                puts += self._puts(name, made, elements, torch.zeros_like(made), self.turn.shift)
            if name in self.changeable and slab.length > 1:
                elements, away = change.places(seed, number, slab.length, self.count)
                puts += self._puts(name, sets, elements, away[sets], shift)
                self._made[name] = (sets, elements)
        called = torch.arange(first, first + calls) % self.count
        leading = torch.arange(first - lead, first) % self.count
        used = torch.cat((called, leading))
        others = sets[~torch.isin(sets, used)]
        used = used[torch.isin(used, sets)]
        looks, idle = [], []
        for spec in self.outputs:
            slab = self.slabs[spec.name]
            if slab.length:
                some = torch.tensor([bound.below(slab.length) for _ in range(min(slab.length, _LOOKS))])
                looks.append((spec, slab, bound.to(slab.positions(called, some), self.device)))
                idle.append((spec, slab, bound.to(slab.positions(others, some[:1]), self.device)))
        self.turn = Turn(parts, shift, seed, bound.below(3), first, calls, puts, looks, idle, tuple(used.tolist()))

    def _puts(self, name: str, sets: Any, elements: Any, away: Any, shift: int) -> list[tuple[Slab, Any, Any]]:
        """Return the changes that give elements of these sets the drawn values of the elements `away` behind them."""
        slab, puts = self.slabs[name], []
        for variation, values in enumerate(self._values[name]):
            chosen = (sets + shift) % self.variations == variation
            if not chosen.any():
                continue
            source = bound.flatten((elements.unsqueeze(0) + away[chosen].unsqueeze(1)) % slab.length)
            drawn = bound.flatten(bound.view(values, slab.bits.dtype))
            bits = bound.to(bound.index_select(drawn, 0, bound.to(source, drawn.device)), self.device)
            puts.append((slab, bound.to(slab.positions(sets[chosen], elements), self.device), bits))
        return puts

    def refresh(self) -> None:
        """Renew the sets of the turn: the inputs, then the poison in the outputs. Nothing here waits for the device. A
        preparation is renewed before the inputs that it may not read."""
        if self.preparation is not None:
            constant = self.preparation.inputs
            self._renew([s for s in self.inputs if s.name in constant])
            self.preparation.renew(self.turn.used)
            self._renew([s for s in self.inputs if s.name not in constant])
        else:
            self._renew(self.inputs)
        self.poison()

    def _renew(self, specs: Sequence[TensorSpec]) -> None:
        if self._rotates:
            self._load(specs)
        slabs = [self.slabs[s.name] for s in specs]
        for slab, where, bits in self.turn.puts:
            if slab in slabs:
                bound.scatter_(slab.bits, 0, where, bits)

    def poison(self) -> None:
        for spec in self.outputs:
            for start, stop in self.turn.parts:
                self.slabs[spec.name].poison(spec.poison[self.turn.poison], start, stop)

    def change_poison(self) -> None:
        """Choose another pattern than the turn's."""
        self.turn = replace(self.turn, poison=(self.turn.poison + 1) % 3)

    def poison_some(self) -> None:
        """Poison only the elements that will be checked."""
        for spec, slab, at in self.turn.looks:
            bound.scatter_(slab.bits, 0, at, self.pattern(spec))

    def _load(self, specs: Sequence[TensorSpec]) -> None:
        for start, stop in self.turn.parts:
            for spec in specs:
                for variation, values in enumerate(self._values[spec.name]):
                    first = start + (variation - start - self.turn.shift) % self.variations
                    if first < stop:
                        bound.copy_(self.slabs[spec.name].every(first, self.variations, stop), values)

    def look(self, few: int = _LOOKS) -> list[Any]:
        """Return the current bits of the turn's elements, or of a few of them, for each output: one row per call."""
        calls, seen = self.turn.calls, []
        for _, slab, at in self.turn.looks:
            some = bound.view(at, calls, -1)[:, :few]
            seen.append(bound.view(bound.index_select(slab.bits, 0, bound.flatten(some)), calls, -1))
        return seen

    def untouched(self) -> bool:
        """True if outputs that no call uses are unchanged."""
        return all(
            bool(bound.all_(bound.index_select(slab.bits, 0, at) == self.pattern(spec)))
            for spec, slab, at in self.turn.idle
        )

    def pattern(self, spec: TensorSpec) -> int:
        """Return the turn's poison for an output, as a number of its integer dtype."""
        return signed(spec.poison[self.turn.poison], spec.itemsize)

    def poison_in(self, seen: list[Any]) -> Iterator[Any]:
        """Yield masks of the poison in elements that were read with `look`."""
        for (spec, _, _), bits in zip(self.turn.looks, seen, strict=True):
            yield bits == self.pattern(spec)

    def unwritten(self, seen: list[Any]) -> int | None:
        """Return one of the turn's calls that left poison in the elements read; None if none did."""
        for left in self.poison_in(seen):
            calls = left.any(1).nonzero()
            if calls.numel():
                return self.turn.first + int(calls[bound.below(calls.numel())])
        return None


_sent: dict[tuple[str, str, int], Any] = {}


def _uploaded(request: Time, spec: TensorSpec, variation: int, memory: memoryview) -> Any:
    """Return one input's values. Those for a GPU are sent there once, not in every round, unless there are too many."""
    values, device = spec.values(memory, variation), request.round.device
    if device == "cpu" or values.nbytes > torch.cuda.get_device_properties(0).total_memory >> 4:
        return values
    key = (request.workload, spec.name, variation)
    if key not in _sent:
        for old in [k for k in _sent if k[0] != key[0]]:
            del _sent[old]
        _sent[key] = values.to(device)
    return _sent[key]
