"""The parent's view of a worker's tensors: it fills the guarded buffers before a call and checks every byte after it.

The parent does not rely on the worker's answers: on a CPU both processes share the buffers' memory, on a GPU the worker
copies them to the device and back as raw bytes."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from assay.lazy import torch
from assay.worker.bits import bits
from assay.worker.channel import tensor
from assay.worker.guard import ALIGN, PATTERNS, inside, outside_damage, room, surround
from assay.worker.request import Call, TensorSpec

_NOISE = 1021
"""Bytes of noise that are repeated around a tensor; a prime, so that no two rows or elements see the same."""


class Buffers:
    """Every tensor of a workload, each at `places` different addresses."""

    def __init__(self, call: Call, places: int, memory: Callable[[int], memoryview]) -> None:
        self.inputs, self.outputs, self._returns = call.inputs, call.outputs, call.kernel.returns
        self._specs = {spec.name: spec for spec in call.tensors}
        self._around = self._surroundings()
        at = 0
        self.places: dict[str, tuple[int, ...]] = {}
        self.copies: dict[str, int] = {}
        """The offset in the arena of a copy of each output, made when a call returns."""
        for spec in self._specs.values():
            if not spec.alias:
                self.places[spec.name] = tuple(at + i * room(spec).size for i in range(places))
                at += places * room(spec).size
        for spec in self.outputs:
            self.copies[spec.name] = at
            at += -(-(room(self._holder(spec)).span + 1) // ALIGN) * ALIGN
        self.total = at
        self._memory = memory(at)

    def _surroundings(self) -> dict[str, list[torch.Tensor]]:
        """Return the bytes around each tensor, for each of the two patterns. Around an input they are one byte. Around
        what a kernel may write they are noise: one that goes on past the end of an input and its output would otherwise
        write what is there already, as ReLU of NaN does."""
        writable = {spec.alias or spec.name for spec in self._specs.values()} - {s.name for s in self.inputs}
        writable |= {spec.alias for spec in self.outputs if spec.alias}
        around = {}
        for name in self._specs:
            contents = [secrets.token_bytes(_NOISE) if name in writable else bytes([byte]) for byte in PATTERNS]
            around[name] = [torch.frombuffer(bytearray(one), dtype=torch.uint8) for one in contents]
        return around

    def _holder(self, spec: TensorSpec) -> TensorSpec:
        """Return the tensor whose memory an output uses: an input if the call works in place."""
        return self._specs[spec.alias or spec.name]

    def _buffer(self, name: str, place: int) -> torch.Tensor:
        whole: torch.Tensor = tensor(
            self._memory, self.places[name][place], torch.uint8, [room(self._specs[name]).size]
        )
        return whole

    def fill(self, name: str, place: int, values: torch.Tensor, pattern: int) -> None:
        """Write a tensor and everything around it."""
        spec, buffer = self._specs[name], self._buffer(name, place)
        surround(buffer, spec, self._around[name][pattern])
        if values.numel():
            bits(inside(buffer, spec)).copy_(bits(values))

    def held(self, name: str, place: int) -> torch.Tensor:
        """Return the current contents of a tensor."""
        spec = self._specs[name]
        return inside(self._buffer(name, place), spec).clone()

    def results(self) -> dict[str, torch.Tensor]:
        """Return the outputs as they were when the last call returned."""
        results = {}
        for spec in self.outputs:
            holder = self._holder(spec)
            dense = self._returns or room(holder).dense
            size = spec.elements if dense else holder.span // spec.itemsize
            flat = tensor(self._memory, self.copies[spec.name], getattr(torch, spec.dtype), [size])
            value = flat.view(spec.shape) if dense else flat.as_strided(spec.shape, holder.strides)
            results[spec.name] = value.clone()
        return results

    def final(self, place: int) -> dict[str, torch.Tensor]:
        """Return the current outputs; empty if the kernel returns them."""
        return {s.name: self.held(s.alias or s.name, place) for s in self.outputs if not self._returns}

    def outside(self, place: int, pattern: int) -> str:
        """Describe a write outside any tensor; empty if there is none."""
        for name in self.places:
            around = self._around[name][pattern]
            if damage := outside_damage(self._buffer(name, place), self._specs[name], around):
                return damage
        return ""

    def changed(self, place: int, values: dict[str, torch.Tensor]) -> str:
        """Describe a changed input; empty if there is none. An input that an output overwrites may change."""
        shared = {spec.alias for spec in self.outputs}
        for spec in self.inputs:
            name = spec.name
            if name in shared or not values[name].numel():
                continue
            now, before = bits(inside(self._buffer(name, place), spec)), bits(values[name])
            if not torch.equal(now, before):
                wrong = (now != before).flatten().nonzero()
                return f"`{name}`, {wrong.numel()} of {before.numel()} elements, first at {int(wrong[0])}"
        return ""

    def later(self, place: int, results: dict[str, torch.Tensor]) -> str:
        """Describe an output that changed after the call returned; empty if there is none."""
        if self._returns:
            return ""
        for spec in self.outputs:
            name, holder = spec.name, self._holder(spec)
            if not results[name].numel():
                continue
            now, then = bits(inside(self._buffer(holder.name, place), holder)), bits(results[name])
            if not torch.equal(now, then):
                wrong = (now != then).flatten().nonzero()
                return f"{wrong.numel()} of {then.numel()} elements of `{name}`, first at {int(wrong[0])}"
        return ""


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """True if both are equal bit for bit, except for the payload of NaNs."""
    return all(bool(((bits(a[n]) == bits(b[n])) | (_nan(a[n]) & _nan(b[n]))).all()) for n in a)


def _nan(value: torch.Tensor) -> torch.Tensor:
    return (value.float() if value.element_size() == 1 else value).isnan()  # torch has no isnan for 8-bit formats
