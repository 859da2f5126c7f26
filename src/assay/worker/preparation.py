"""Inside a worker: what a peer made of the constant inputs, one for each set of buffers. It is made anew before every
batch, as soon as these inputs are new and before the others are, and lies where it lay before: a batch that became a
graph goes on reading it there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from assay.kernel import PREPARED
from assay.worker import bound
from assay.worker.load import Preparing


class Kept(NamedTuple):
    """Bytes of one set."""

    bytes: int = 0
    """Of what was prepared."""
    constants: int = 0
    """Of the inputs that it was made of."""

    def least_read(self, size: int) -> int:
        """Of a set's bytes, those that a call must read or write at least."""
        return min(size, size - self.constants + self.bytes) if self.bytes else size


NOTHING = Kept()


class Preparation:
    def __init__(self, function: Preparing, sets: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        self._function, self._sets = function, sets
        made = function.prepared(*sets[0])
        whole = made if isinstance(made, tuple) else (made,)
        if not all(isinstance(t, bound.Tensor) for t in whole):
            name = function.kernel.prepare
            raise TypeError(f"{name} returned {type(made).__name__}, expected a tensor or a tuple of tensors")
        self._single = made is not whole
        self._kept = [tuple(map(bound.clone, whole)) for _ in sets]

    @property
    def inputs(self) -> set[str]:
        """The names of those that it is made of."""
        names = self._function.kernel.prepares
        return {n for n, constant in zip(names, self._function.constant, strict=False) if constant}

    @property
    def kept(self) -> Kept:
        inputs, _ = self._sets[0]
        constants = [t for t, c in zip(inputs, self._function.constant, strict=True) if c and t is not None]
        return Kept(sum(t.nbytes for t in self._kept[0]), sum(t.nbytes for t in constants))

    def arguments(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """What the kernel itself is called with, set by set."""
        return [
            (inputs, self._function.own(named) | {PREPARED: kept[0] if self._single else kept})
            for (inputs, named), kept in zip(self._sets, self._kept, strict=True)
        ]

    def renew(self, sets: Iterable[int]) -> None:
        """Prepare these sets again, in that order."""
        for index in sets:
            made = self._function.prepared(*self._sets[index])
            for old, new in zip(self._kept[index], made if isinstance(made, tuple) else (made,), strict=True):
                bound.copy_(old, new)
