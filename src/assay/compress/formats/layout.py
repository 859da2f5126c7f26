"""What a format stores for a tensor: codes of one width, and shared values for each group of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Literal

from assay.compress.formats.coded import Coded
from assay.compress.formats.groups import WHOLE, Groups
from assay.compress.formats.packing import packed_bytes
from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, device

Stored = Literal["uint8", "bfloat16", "float32"]
STORED_BITS: dict[Stored, int] = {"uint8": 8, "bfloat16": 16, "float32": 32}


@dataclass(frozen=True)
class Layout:
    width: int
    """Bits of a code."""
    groups: Groups = WHOLE
    """Which elements share values; unused if there are no shared values."""
    shared: Mapping[str, Stored] = field(default_factory=dict)
    """Names of the shared values and the torch dtypes in which they are stored."""

    def bits(self, shape: Sequence[int]) -> int:
        each = sum(STORED_BITS[stored] for stored in self.shared.values())
        return prod(shape) * self.width + self.groups.count(shape) * each

    def empty(self, shape: Sequence[int], on: device) -> Coded:
        """Return the code of a tensor without elements."""
        shared = {name: torch.empty(0, dtype=getattr(torch, stored), device=on) for name, stored in self.shared.items()}
        return Coded(torch.empty(0, dtype=torch.uint8, device=on), shared, tuple(shape))

    def require(self, coded: Coded, name: str) -> None:
        """Raise UsageError if the format called `name` cannot have encoded this."""
        count = packed_bytes(prod(coded.shape), self.width)
        wanted: dict[str, tuple[str, int]] = {"elements": ("uint8", count)}
        wanted |= {part: (stored, self.groups.count(coded.shape)) for part, stored in self.shared.items()}
        if wanted != (given := {part: _described(t) for part, t in coded.tensors.items()}):
            raise UsageError(
                f"a tensor of shape {tuple(coded.shape)} in {name} has {_listed(wanted)}, not {_listed(given)}",
                fix="decode with the format that encoded it, and give its tensors and its shape unchanged",
            )


def _described(tensor: Tensor) -> tuple[str, int]:
    return str(tensor.dtype).removeprefix("torch."), tensor.numel()


def _listed(parts: Mapping[str, tuple[str, int]]) -> str:
    return ", ".join(f"{part} of {count} {dtype}" for part, (dtype, count) in parts.items())
