"""Inside a worker: what a peer prepares from the constant inputs, for each set of buffers. It is renewed before every
batch, after these inputs and before the others, and keeps its address: a batch captured into a graph reads it there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from assay.kernel import PREPARED
from assay.worker import bound
from assay.worker.load import Preparing


class Kept(NamedTuple):
    """Sizes of one set, in bytes."""

    bytes: int = 0
    """Bytes of what was prepared."""
    constants: int = 0
    """Bytes of the inputs that it was made of."""

    def least_read(self, size: int) -> int:
        """Return how many of a set's bytes a call must at least read or write."""
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
        """The names of the inputs that it is made of."""
        names = self._function.kernel.prepares
        return {n for n, constant in zip(names, self._function.constant, strict=False) if constant}

    @property
    def kept(self) -> Kept:
        inputs, _ = self._sets[0]
        constants = [t for t, c in zip(inputs, self._function.constant, strict=True) if c and t is not None]
        return Kept(sum(t.nbytes for t in self._kept[0]), sum(t.nbytes for t in constants))

    def arguments(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Return what the kernel itself is called with, set by set."""
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
