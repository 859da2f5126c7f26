"""A call of a kernel as data: the kernel, the workload, and where every tensor lies."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from assay import dtype as dtypes
from assay.dtype import DType
from assay.kernel import Kernel
from assay.worker.channel import place, tensor
from assay.workload import Workload

_GAPS = (3, 16, 2)
"""Elements between the rows of a strided tensor, chosen by the workload's seed: with an odd gap rows lose their
alignment, with 16 they keep it, so that vectors are loaded there too, and with 2 they keep a part of it."""
_SCATTER = 2
"""Stride of the last dimension of a scattered tensor."""


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a call."""

    name: str
    dtype: str
    """torch's name of the dtype."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in elements."""
    offset: int = 0
    """Elements by which it is out of alignment."""
    poison: tuple[int, ...] = ()
    """Bit patterns that no kernel writes by chance."""
    alias: str = ""
    """The input in whose memory this output lies."""
    at: tuple[int, ...] = ()
    """Offsets of its values in the arena, one for each set of them."""

    @property
    def itemsize(self) -> int:
        return dtypes.dtype(self.dtype).itemsize

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of its elements alone."""
        return self.elements * self.itemsize

    @property
    def span(self) -> int:
        """Bytes from its first element to behind its last."""
        if not self.elements:
            return 0
        return self.itemsize * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)))

    def values(self, memory: memoryview, index: int) -> Any:
        """Return the values at that place, as a contiguous tensor on the arena's own memory."""
        import torch

        return tensor(memory, self.at[index], getattr(torch, self.dtype), self.shape)


def spec(name: str, number: DType, shape: tuple[int, ...], workload: Workload | None = None) -> TensorSpec:
    """Return a tensor laid out as the workload wants it; without a workload, contiguous and aligned."""
    apart = workload is not None and len(shape) > 1 and name in (*workload.strided, *workload.scattered)
    step = _SCATTER if workload is not None and name in workload.scattered else 1
    row = shape[-1] * step + (_gap(name, workload.seed) if workload is not None and apart else 0) if shape else 0
    strides = [math.prod(shape[i + 1 : -1]) * row for i in range(len(shape) - 1)] + [step] * bool(shape)
    offset = workload.offset if workload else 0
    return TensorSpec(name, number.torch_name, tuple(shape), tuple(strides), offset, tuple(number.poisons))


def _gap(name: str, seed: int) -> int:
    """Return the gap between rows, which may differ between tensors of one workload. Without a seed it is the first."""
    return _GAPS[(seed + zlib.crc32(name.encode())) % len(_GAPS)] if seed else _GAPS[0]


def placed(specs: Iterable[tuple[TensorSpec, int]]) -> tuple[list[TensorSpec], int]:
    """Return the tensors with as many places in the arena as requested for each, and the bytes of all of them."""
    wanted = list(specs)
    offsets, total = place([one.bytes for one, count in wanted for _ in range(count)])
    places = iter(offsets)
    return [replace(one, at=tuple(next(places) for _ in range(count))) for one, count in wanted], total


@dataclass(frozen=True)
class Call:
    """What another process must know to build or call a kernel on a workload."""

    kernel: Kernel
    op: str
    op_file: str
    dtype: str
    mode: str
    parameters: dict[str, Any]
    """Tunables that are not at their defaults."""
    inputs: tuple[TensorSpec, ...]
    """The inputs that the workload has."""
    outputs: tuple[TensorSpec, ...]
    scratch: tuple[TensorSpec, ...]
    arena: int
    """Bytes of shared memory."""
    attributes: dict[str, Any]
    axes: dict[str, int]

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return *self.inputs, *self.outputs, *self.scratch

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        workload: Workload,
        mode: str,
        parameters: Mapping[str, Any],
        *,
        variations: int = 0,
        runs: int = 0,
    ) -> Call:
        """Return a call. Its arena has room for `variations` sets of values of each input and `runs` of each output."""
        op = workload.op
        inputs = [spec(n, workload.dtype_of(t), workload.shape(t), workload) for n, t in workload.present.items()]
        outputs = [
            replace(
                spec(name, workload.dtype_of(t), workload.shape(t), workload),
                alias=op.aliases.get(name, "") if workload.inplace else "",
            )
            for name, t in op.outputs.items()
            if name not in workload.without and writes(kernel, name, t.optional)
        ]
        scratch = [
            spec(name, dtypes.dtype(number), tuple(workload.length(d) for d in sizes))
            for name, (number, *sizes) in kernel.scratch.items()
        ]
        tensors, total = placed([(s, variations) for s in inputs] + [(s, runs) for s in outputs])
        return cls(
            kernel,
            op.name,
            op.source,
            workload.dtype.name,
            mode,
            dict(parameters),
            tuple(tensors[: len(inputs)]),
            tuple(tensors[len(inputs) :]),
            tuple(scratch),
            total,
            dict(workload.attributes),
            {**dict(workload.axes), **{n: workload.length(n) for n in op.derived}},
        )


def writes(kernel: Kernel, name: str, optional: bool) -> bool:
    """True if the kernel writes this output. One that is derived from the op's reference writes all of them."""
    derived = kernel.file is None or bool(kernel.launches)
    return derived or name in kernel.parameters or (kernel.returns and not optional)
