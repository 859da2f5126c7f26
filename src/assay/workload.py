"""A workload: one point at which an op is evaluated, with its sizes and cost. Its printed form rebuilds it exactly."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from assay.dtype import DType, dtype
from assay.errors import UsageError
from assay.op import Op, Tensor

PARTS = ("dtype", "seed", "values", "offset", "strided", "scattered", "without", "inplace")
"""Names of a printed workload's parts besides axes and attributes, which must not have such a name."""

VALUES = {
    "normal": "unit normals",
    "small": "normals scaled by 2⁻¹⁰",
    "wide": "magnitudes over the whole declared range",
    "offset": "a mean far from zero",
    "special": "the NaN and Inf that the op declares, at a few places",
    "zeros": "half of the elements are zero, of either sign, and some whole rows",
    "subnormal": "below the smallest normal number of the format",
    "negative": "no element is positive; half of the rows are far below zero",
    "constant": "each row repeats one value",
    "ties": "few distinct values, each many times",
    "lines": "−Inf or NaN, where the op declares them, in whole rows, in half of a row, or in all but its last element",
    "outlier": "one element is far larger than all others",
    "alike": "all elements but one are 0, or 1",
    "sorted": "ascending along the last dimension",
    "cancel": "neighbours that almost cancel each other",
    "halfway": "values whose sums and quotients lie on rounding ties, and the neighbours of powers of two",
    "ends": "integers at the ends of their range",
    "beyond": "outside the declared range; reported, never judged",
}
"""How inputs are drawn. Besides these, `near:C` draws values around the constant C."""


def values_exist(kind: str) -> bool:
    """Return whether this is a kind of values, or `near:` with a number."""
    if kind in VALUES:
        return True
    prefix, _, number = kind.partition(":")
    try:
        return prefix == "near" and math.isfinite(float(number))
    except ValueError:
        return False


@dataclass(frozen=True)
class Workload:
    op: Op = field(compare=False, repr=False)
    axes: tuple[tuple[str, int], ...]
    dtype: DType
    attributes: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    values: str = "normal"
    offset: int = 0
    """Number of elements by which every tensor's start is shifted off its natural alignment."""
    strided: tuple[str, ...] = ()
    """Tensors with gaps between their rows."""
    without: tuple[str, ...] = ()
    """Optional inputs and outputs that are left out."""
    inplace: bool = False
    """True if outputs share memory with the inputs they may alias."""
    scattered: tuple[str, ...] = ()
    """Tensors with gaps between the elements of a row, too."""

    @classmethod
    def of(cls, op: Op, text: str = "") -> Workload:
        """Return the workload of `op` printed as `text`, e.g. `rows=3,cols=5,dtype=bf16,seed=7,offset=1`. Parts that it
        does not name take their defaults."""
        given: dict[str, str] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            key, equals, value = part.partition("=")
            if not equals:
                raise UsageError(f"'{part}' in workload '{text}' is not name=value", fix=_example(op))
            given[key.strip()] = value.strip()
        if unknown := sorted(set(given) - {*op.axes, *op.attributes, *PARTS}):
            raise UsageError(f"{op.name} has no '{unknown[0]}' (in workload '{text}')", fix=_example(op))
        try:
            axes = tuple((name, int(given.get(name, axis.typical))) for name, axis in op.axes.items())
            attributes = tuple(
                (name, type(a.default)(given[name]) if name in given else a.default)
                for name, a in op.attributes.items()
            )
            numbers = {key: int(given.get(key, 0)) for key in ("seed", "offset", "inplace")}
        except ValueError as error:
            raise UsageError(f"workload '{text}': {error}", fix=_example(op)) from None

        def names(key: str) -> tuple[str, ...]:
            return tuple(filter(None, given.get(key, "").split("+")))

        values = given.get("values", "normal")
        if not values_exist(values):
            kinds = f"one of: {', '.join(VALUES)}, near:NUMBER"
            raise UsageError(f"values={values}: no such kind of values", fix=kinds)
        workload = cls(
            op,
            axes,
            dtype(given.get("dtype", op.dtypes[0])),
            attributes,
            numbers["seed"],
            values,
            numbers["offset"],
            names("strided"),
            names("without"),
            bool(numbers["inplace"]),
            names("scattered"),
        )
        workload.validate()
        return workload

    def validate(self) -> None:
        """Raise UsageError unless the workload is within the op's contract."""
        op, tensors = self.op, {**self.op.inputs, **self.op.outputs}
        for name, value in self.axes:
            axis = op.axes[name]
            if not axis.min <= value <= axis.max:
                raise UsageError(
                    f"{op.name}: {name}={value} is outside {axis.min}..{axis.max}", fix="choose another size"
                )
        if self.dtype.name not in op.dtypes:
            raise UsageError(f"{op.name} is not declared for {self.dtype}", fix=f"one of: {', '.join(op.dtypes)}")
        for name in self.strided:
            if name not in tensors or not tensors[name].strided:
                raise UsageError(f"{op.name}: tensor '{name}' must be contiguous", fix=f"leave out strided={name}")
        for name in self.scattered:
            if name not in tensors or tensors[name].strided != "all":
                raise UsageError(
                    f"{op.name}: the rows of tensor '{name}' must be dense", fix=f"leave out scattered={name}"
                )
        for name in self.without:
            if name not in tensors or not tensors[name].optional:
                raise UsageError(f"{op.name}: '{name}' is not optional", fix=f"leave out without={name}")
        if not self.allowed:
            raise UsageError(f"{op.name}: {self} is outside the op's contract", fix="choose other sizes")

    @property
    def allowed(self) -> bool:
        """Whether the sizes are within the op's contract."""
        sizes = all(self.op.axes[n].min <= v <= self.op.axes[n].max for n, v in self.axes)
        return sizes and (self.op.require is None or bool(self.op.require(self.sizes)))

    def length(self, axis: str | int) -> int:
        """Return the length of an axis, which may be a derived one."""
        if isinstance(axis, int):
            return axis
        return self.op.derived[axis](self.sizes) if axis in self.op.derived else int(self.named[axis])

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(map(self.length, tensor.shape))

    def dtype_of(self, tensor: Tensor) -> DType:
        return dtype(tensor.dtype) if tensor.dtype else self.dtype

    @property
    def present(self) -> dict[str, Tensor]:
        """The inputs that are not left out."""
        return {n: t for n, t in self.op.inputs.items() if n not in self.without}

    @property
    def elements(self) -> int:
        """Number of elements of all tensors, the measure of a workload's size."""
        return sum(math.prod(self.shape(t)) for t in (*self.present.values(), *self.op.outputs.values()))

    @property
    def bytes(self) -> int:
        """Bytes that must cross the memory interface."""
        if self.op.traffic:
            return self.op.traffic(self.sizes)
        return sum(self._bytes(t) for t in self.present.values()) + self.written

    @property
    def written(self) -> int:
        """Bytes of all outputs that are not optional."""
        return sum(self._bytes(t) for t in self.op.outputs.values() if not t.optional)

    def _bytes(self, tensor: Tensor) -> int:
        return math.prod(self.shape(tensor)) * self.dtype_of(tensor).itemsize

    @property
    def operations(self) -> int:
        """Number of arithmetic operations that must be done."""
        return self.op.operations(self.sizes)

    @property
    def lost_in_sums(self) -> dict[str, float]:
        """Ulps that adding the terms of each output may lose: half an ulp for each doubling, the bound of pairwise
        summation, and half as much again because lanes add some terms one after another."""
        terms, outputs = self.op.terms(self.sizes), self.op.outputs
        each = terms if isinstance(terms, dict) else dict.fromkeys(outputs, terms)
        return {n: 0.75 * math.log2(max(1, each.get(n, 1))) for n in outputs}

    @property
    def named(self) -> dict[str, Any]:
        """Axes and attributes by name."""
        return dict((*self.axes, *self.attributes))

    @cached_property
    def sizes(self) -> SimpleNamespace:
        """The argument of the op's own functions: axes, derived sizes and attributes by name, and the dtype. A derived
        size may use those that are declared before it. One that fails is left out: sizes may lie outside the
        contract."""
        known = SimpleNamespace(**self.named, dtype=self.dtype)
        for name, length in self.op.derived.items():
            with contextlib.suppress(Exception):
                setattr(known, name, length(known))
        return known

    def replace(self, **changes: Any) -> Workload:
        return replace(self, **changes)

    def __str__(self) -> str:
        parts = [f"{k}={v}" for k, v in (*self.axes, *self.attributes)] + [f"dtype={self.dtype}"]
        parts += [f"seed={self.seed}"] if self.seed else []
        parts += [f"values={self.values}"] if self.values != "normal" else []
        parts += [f"offset={self.offset}"] if self.offset else []
        parts += [f"strided={'+'.join(self.strided)}"] if self.strided else []
        parts += [f"scattered={'+'.join(self.scattered)}"] if self.scattered else []
        parts += [f"without={'+'.join(self.without)}"] if self.without else []
        parts += ["inplace=1"] if self.inplace else []
        return ",".join(parts)


def _example(op: Op) -> str:
    sizes = [f"{n}={a.typical}" for n, a in op.axes.items()]
    return f"write it as {','.join([*sizes, f'dtype={op.dtypes[0]}'])}"
