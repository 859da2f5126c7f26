"""Inside a worker: one round of a benchmark. Fresh buffers, then batches that rotate over more memory than any cache
holds (cold), batches on the same buffers (hot), and single calls that are waited for (call)."""

from __future__ import annotations

import math
import random
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.kernel import address
from assay.worker import channel, load
from assay.worker.execute import function_of, output_in, summaries, use_threads
from assay.worker.stopwatch import Call, GraphReplay, HeldStream, HostClock, NotCapturable, Watch, call_time

if TYPE_CHECKING:
    from assay.backends import Backend

_COLD = {"cuda": 4.0, "cpu": 1.25}
"""Times the last cache that the rotated buffers together must exceed. A CPU's keeps what was used last, and on a shared
machine it is far larger than one's share of it."""
_MOST = 4096
"""Calls in a batch at most."""
_SETS = 8192
"""In a rotation at most. Workloads too small to fill a cache with so many are not quite cold; their record says so."""
_WARM = 3
_ALIGN = 256
"""Bytes: CUDA's natural alignment of an allocation."""


def last_cache(device: str) -> int:
    """Bytes of the cache that all cores or multiprocessors share."""
    if device == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    sizes = [1 << 20]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        text = (index / "size").read_text().strip()
        sizes.append(int(text[:-1]) << {"K": 10, "M": 20}[text[-1]])
    return max(sizes)


class Slab:
    """One tensor of a workload, as often as there are sets, in one allocation: the copies lie a little more than a
    tensor apart, from a start that every round chooses anew."""

    def __init__(self, spec: dict[str, Any], count: int, device: str, shift: int) -> None:
        import torch

        dtype = getattr(torch, spec["dtype"])
        self.shape, self.strides = tuple(spec["shape"]), tuple(spec["strides"])
        self.step = -(-(_span(spec) + spec["offset"] * dtype.itemsize) // _ALIGN) * _ALIGN // dtype.itemsize
        self.first = shift * _ALIGN // dtype.itemsize + spec["offset"]
        self.flat = torch.empty(self.first + count * self.step + _ALIGN, dtype=dtype, device=device)
        self.bits = self.flat.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])

    def tensor(self, index: int) -> Any:
        return self.flat.as_strided(self.shape, self.strides, self.first + index * self.step)

    def every(self, start: int, step: int, count: int) -> Any:
        """The tensors start, start + step, … as one with another dimension in front."""
        return self.flat.as_strided(
            (len(range(start, count, step)), *self.shape), (step * self.step, *self.strides),
            self.first + start * self.step,
        )  # fmt: skip

    def poison(self, bits: int) -> None:
        width = self.bits.element_size() * 8
        self.bits.fill_(bits - (1 << width) if width > 8 and bits >= 1 << (width - 1) else bits)


def _span(spec: dict[str, Any]) -> int:
    """Bytes from a tensor's first element to behind its last."""
    import torch

    if 0 in spec["shape"]:
        return 0
    elements = 1 + sum((n - 1) * s for n, s in zip(spec["shape"], spec["strides"], strict=True))
    return int(elements * getattr(torch, spec["dtype"]).itemsize)


class Buffers:
    """Sets of all tensors of a workload, each at addresses of its own."""

    def __init__(self, message: dict[str, Any], memory: memoryview) -> None:
        device, cache = message["device"], last_cache(message["device"])
        specs = (*message["inputs"], *message["outputs"], *message["scratch"])
        size = max(1, sum(map(_span, specs)))
        wanted = int(_COLD[device] * cache) // size + 2
        self.count = max(2, min(wanted, _room(message) // size, _SETS))
        self.cold = self.count >= wanted or size > _COLD[device] * cache
        self.variations = message["variations"]
        rng = random.Random(message["round"])
        self.slabs = {s["name"]: Slab(s, self.count, device, rng.randrange(1, 256)) for s in specs}
        for spec in message["inputs"]:
            slab = self.slabs[spec["name"]]
            for variation in range(min(self.variations, self.count)):
                values = _values(message, spec, variation, memory)
                slab.every(variation, self.variations, self.count).copy_(values)
        self.outputs = message["outputs"]
        self.returned: Any = None
        """By the last call."""

    def poison(self) -> None:
        """So that a timed call that computes nothing is seen."""
        for spec in self.outputs:
            self.slabs[spec["name"]].poison(spec["poison"][0])


def _room(message: dict[str, Any]) -> int:
    """Bytes that all sets together may take."""
    import torch

    most = int(message["most_bytes"])
    return min(most, int(0.5 * torch.cuda.mem_get_info()[0])) if message["device"] == "cuda" else most


_uploaded: dict[tuple[str, str, int], Any] = {}


def _values(message: dict[str, Any], spec: dict[str, Any], variation: int, memory: memoryview) -> Any:
    """One input's values. Those for a GPU are sent there once, not in every round, unless they are very many."""
    import torch

    values = channel.tensor(memory, spec["at"][variation], getattr(torch, spec["dtype"]), spec["shape"])
    if message["device"] == "cpu" or values.nbytes > torch.cuda.get_device_properties(0).total_memory >> 4:
        return values
    key = (message["workload"], spec["name"], variation)
    if key not in _uploaded:
        for old in [k for k in _uploaded if k[0] != key[0]]:
            del _uploaded[old]
        _uploaded[key] = values.to(message["device"])
    return _uploaded[key]


@cache
def _watch(device: str, capture: bool) -> Watch:
    return HostClock() if device == "cpu" else GraphReplay() if capture else HeldStream()


@cache
def _stream(device: str) -> Any:
    """One for all rounds: memory freed on one stream is not given out on another."""
    import torch

    return torch.cuda.Stream() if device == "cuda" else None


def timed(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    """One round, or (with `activity`) the same calls under the device's own record of what ran."""
    import torch

    use_threads(message["threads"])
    try:
        return _round(message, arena.view(message["arena"]))
    except NotCapturable as error:
        return {"uncapturable": str(error)}
    finally:
        if message["device"] == "cuda":
            torch.cuda.empty_cache()  # the next round's memory is fresh, and other kernels have room for theirs


def _round(message: dict[str, Any], memory: memoryview) -> dict[str, Any]:
    import torch

    device = message["device"]
    watch, stream = _watch(device, message["capture"]), _stream(device)
    with torch.cuda.stream(stream), _language(message).on_current_stream():
        buffers = Buffers(message, memory)
        began = time.perf_counter()
        call, artifacts = _kernel(message, buffers)
        call(0)
        watch.finish()
        first = time.perf_counter() - began
        for i in range(1, _WARM + 1):
            call(i)
        watch.finish()
        if message.get("activity"):
            from assay.worker.activity import record

            return record(call, message["activity"], stream)
        return {"first_call": first, "artifacts": artifacts, **_samples(message, buffers, call, watch, memory)}


def _language(message: dict[str, Any]) -> Backend:
    from assay.backends import backend

    return backend(address(message["kernel"]["address"]).backend if message["kernel"] else "torch")


def _kernel(message: dict[str, Any], buffers: Buffers) -> tuple[Call, list[Any]]:
    if message["kernel"] is None:  # the yardstick: as many bytes, half of them read and half written
        import torch

        pairs = [(buffers.slabs["from"].tensor(i), buffers.slabs["to"].tensor(i)) for i in range(buffers.count)]
        if message["device"] == "cpu":
            return (lambda i: pairs[i % buffers.count][1].copy_(pairs[i % buffers.count][0])), []
        # A kernel: from 2 GiB on the driver's own copy is a third slower than what kernels reach.
        return (lambda i: torch.bitwise_not(pairs[i % buffers.count][0], out=pairs[i % buffers.count][1])), []
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

    def call(i: int) -> Any:
        args, keywords = prepared[i % buffers.count]
        buffers.returned = function(*args, **keywords)

    return call, summaries(started)


def _returns(message: dict[str, Any]) -> bool:
    return bool(message["kernel"] and message["kernel"]["returns"])


def _fetch(message: dict[str, Any], buffers: Buffers, chosen: int, memory: memoryview) -> None:
    """What that call left behind, into the arena. Of what a kernel returns only the last is still there."""
    names = [spec["name"] for spec in message["outputs"]]
    for spec in message["outputs"]:
        slab = buffers.slabs[spec["name"]]
        held = output_in(buffers.returned, spec, names) if _returns(message) else slab.tensor(chosen)
        channel.tensor(memory, spec["at"][0], held.dtype, spec["shape"]).copy_(held)


def _samples(message: dict[str, Any], buffers: Buffers, call: Call, watch: Watch, memory: memoryview) -> dict[str, Any]:
    rng = random.Random(message["round"])
    place = rng.randrange(buffers.count)  # every round begins elsewhere in the rotation
    guess = watch.sample(call, place, 2).seconds
    batch = max(1, min(_MOST, math.ceil(watch.shortest_batch / max(guess, 1e-9))))
    count = max(1, min(message["samples"], int(message["seconds"] / max(guess * batch, 1e-9))))
    buffers.poison()
    place += 2
    cold = []
    for _ in range(count):
        cold.append(watch.sample(call, place, batch))
        place += batch
    back = 0 if _returns(message) else rng.randrange(min(batch, buffers.count))
    chosen = (place - 1 - back) % buffers.count
    if message["fetch"]:
        _fetch(message, buffers, chosen, memory)
    hot = [watch.sample(lambda i: call(0), 0, batch) for _ in range(count)]
    single = max(1, min(batch, math.ceil(50e-6 / max(guess, 1e-9))))
    calls = [call_time(call, watch.finish, single) for _ in range(count)]
    return {
        "cold": [s.seconds for s in cold],
        "hot": [s.seconds for s in hot],
        "call": calls,
        "batch": batch,
        "sets": buffers.count,
        "cold_enough": buffers.cold,
        "held": all(s.held for s in (*cold, *hot)),
        "sm_hz": [s.sm_hz for s in cold],
        "method": watch.method,
        "variation": chosen % buffers.variations,
        "cache": last_cache(message["device"]),
    }
