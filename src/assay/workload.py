"""One point at which an op is evaluated. Its printed form rebuilds it exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from assay.dtype import DType

VALUES = {
    "normal": "unit normals",
    "small": "normals scaled by 2⁻¹⁰",
    "wide": "magnitudes over the whole declared range",
    "offset": "a mean far from zero",
    "special": "the NaN and Inf that the op declares, at a few places",
    "zeros": "half of the elements are zero, of either sign",
    "subnormal": "below the smallest normal number of the format",
    "negative": "no element is positive",
    "constant": "each row repeats one value",
    "ties": "few distinct values, each many times",
    "lines": "whole rows of −Inf or NaN, where the op declares them",
    "outlier": "one element is far larger than all others",
    "sorted": "ascending along the last dimension",
    "cancel": "neighbours that almost cancel each other",
    "halfway": "values whose sums and quotients lie on rounding ties, and the neighbours of powers of two",
    "ends": "integers at the ends of their range",
    "beyond": "outside the declared range; reported, never judged",
}
"""How inputs are drawn. Besides these, `near:C` draws values around the constant C."""


def values_exist(kind: str) -> bool:
    """Is this a kind of values, or `near:` with a number?"""
    if kind in VALUES:
        return True
    prefix, _, number = kind.partition(":")
    try:
        return prefix == "near" and math.isfinite(float(number))
    except ValueError:
        return False


@dataclass(frozen=True)
class Workload:
    axes: tuple[tuple[str, int], ...]
    dtype: DType
    attributes: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    values: str = "normal"
    offset: int = 0
    """Elements by which every tensor's start is pushed off its natural alignment."""
    strided: tuple[str, ...] = ()
    """Tensors whose rows lie apart in memory."""
    without: tuple[str, ...] = ()
    """Optional inputs, and outputs, left out."""
    inplace: bool = False
    """Outputs share memory with the inputs they may alias."""
    scattered: tuple[str, ...] = ()
    """Tensors whose elements lie apart within a row, too."""
    _names: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._names.update(self.axes)
        self._names.update(self.attributes)

    def __getattr__(self, name: str) -> Any:
        """Axes and attributes by name: `w.rows`, `w.eps`."""
        try:
            return self.__dict__["_names"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def named(self) -> dict[str, Any]:
        return dict(self._names)

    def replace(self, **changes: Any) -> Workload:
        return replace(self, _names={}, **changes)

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
