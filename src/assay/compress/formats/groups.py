"""Which elements of a tensor share a scale: all, those of a channel, or neighbours along the last axis.

A channel is an index of the first axis; a tensor with fewer than two axes is one channel. Groups of `size` neighbours
run along the last axis and never cross its end, where the last group may be short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

MOST = 1 << 20


@dataclass(frozen=True)
class Groups:
    kind: Literal["tensor", "channel", "group"] = "tensor"
    size: int = 0
    """Elements of a group; 0 for the other kinds."""

    def __post_init__(self) -> None:
        if self.kind == "group" and not 1 <= self.size <= MOST:
            raise UsageError(
                f"a group or block of {self.size} elements", fix=f"write a length from 1 to {MOST}, for example 32"
            )
        if self.kind != "group" and self.size:
            raise UsageError(f"a {self.kind} has no group length", fix="leave the length out")

    @property
    def suffix(self) -> str:
        """The part of a format's name."""
        return {"tensor": "", "channel": ":channel", "group": f":group={self.size}"}[self.kind]

    def count(self, shape: Sequence[int]) -> int:
        """Return the number of groups of a tensor of this shape; an empty one has none."""
        if not prod(shape):
            return 0
        if self.kind == "group":
            return prod(shape[:-1]) * -(-(shape[-1] if shape else 1) // self.size)
        return shape[0] if self.kind == "channel" and len(shape) > 1 else 1

    def split(self, x: Tensor) -> Tensor:
        """Return one row for each group, a short one padded with zeros. x has at least one element."""
        if self.kind != "group":
            return x.reshape(self.count(x.shape), -1)
        last = x.shape[-1] if x.ndim else 1
        return torch.nn.functional.pad(x.reshape(-1, last), (0, -last % self.size)).reshape(-1, self.size)

    def join(self, rows: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the tensor of this shape that was split into these rows."""
        if self.kind != "group":
            return rows.reshape(list(shape))
        last = shape[-1] if shape else 1
        return rows.reshape(-1, last + -last % self.size)[:, :last].reshape(list(shape))

    def lengths(self, x: Tensor) -> Tensor:
        """Return the number of elements of each group, as a column beside the rows of `split`."""
        groups = self.count(x.shape)
        if self.kind != "group":
            return x.new_full((groups, 1), x.numel() // groups)
        last = x.shape[-1] if x.ndim else 1
        ends = torch.arange(0, last, self.size, device=x.device)
        return (last - ends).clamp(max=self.size).to(x.dtype).repeat(groups // len(ends))[:, None]


WHOLE = Groups()
"""One group: the whole tensor."""


def parsed(words: Sequence[str], label: str = "group") -> Groups | None:
    """Parse the word `channel` or `group=N` (or `block=N`), or no word; None if it is something else."""
    match list(words):
        case []:
            return WHOLE
        case ["channel"]:
            return Groups("channel")
        case [word] if word.startswith(f"{label}=") and word.partition("=")[2].isdecimal():
            return Groups("group", int(word.partition("=")[2]))
    return None
