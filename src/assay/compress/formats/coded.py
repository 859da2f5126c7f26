"""A tensor as a number format stores it: packed codes, and the values that groups of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Coded:
    elements: Tensor
    """uint8: the codes in the order of the tensor's elements, row by row, packed by the rule of packing.py."""
    shared: Mapping[str, Tensor]
    """By name, one value for each group in the order of groups.py: `scales` (bfloat16 or float32), `exponents` (uint8)
    or means (float32). Empty if elements share nothing."""
    shape: tuple[int, ...]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors to be stored, besides the format's name and the shape."""
        return {"elements": self.elements, **self.shared}

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self.tensors.values())
