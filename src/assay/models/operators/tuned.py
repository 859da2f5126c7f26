"""The tuned values of a kernel for the shapes with which it is called, looked up once for each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.dtype import dtype
from assay.kernel import Kernel
from assay.op import Op
from assay.store.tuned import TunedRecords, TunedValues, shape_class
from assay.workload import Workload


class TunedCalls:
    """Returns the values of a kernel's tunables for an operator's arguments. The store is read at the first call."""

    def __init__(self, kernel: Kernel, op: Op, named: Callable[[tuple[Any, ...]], dict[str, Any]]) -> None:
        """`named`: returns the sizes and attributes of a call by name."""
        self.kernel, self.op, self._named = kernel, op, named
        self._records = TunedRecords()
        self._known: dict[tuple[Any, ...], TunedValues] = {}
        self.used: dict[str, TunedValues] = {}
        """The values given to calls so far, by shape class."""

    def __call__(self, arguments: tuple[Any, ...], number: Any) -> Mapping[str, Any]:
        sizes = self._named(arguments)
        if any(type(sizes[axis]) is not int for axis in self.op.axes):
            return {}  # a compiler traces for all sizes at once
        key = (*sizes.values(), number, *(a is None for a in arguments))
        values = self._known.get(key)
        if values is None:
            values = self._known[key] = self._found(sizes, arguments, number)
        return values.parameters

    def _found(self, sizes: dict[str, Any], arguments: tuple[Any, ...], number: Any) -> TunedValues:
        without = tuple(n for n, a in zip(self.op.inputs, arguments, strict=False) if a is None)
        workload = Workload(
            self.op,
            tuple((axis, sizes[axis]) for axis in self.op.axes),
            dtype(number),
            tuple((name, sizes[name]) for name in self.op.attributes if name in sizes),
            without=without,
        )
        values = self._records.of(self.kernel, workload, arguments[0].device.type)
        self.used[shape_class(workload)] = values
        return values

    def __str__(self) -> str:
        """Return the values given to calls so far, and their source."""
        return "; ".join(_words(shape, values) for shape, values in self.used.items())


def _words(shape: str, values: TunedValues) -> str:
    if not values.parameters:
        return f"defaults on {shape}: {values.why_not}"
    given = ", ".join(f"{name}={value}" for name, value in values.parameters.items())
    return f"{given} on {shape}, from {values.source}"
