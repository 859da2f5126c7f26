"""One cell of the study: a shape, a format, a device, causal or not. All arms are compared on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from assay.dtype import dtype


@dataclass(frozen=True)
class Cell:
    batch: int
    heads: int
    seq: int
    dim: int
    causal: bool
    dtype: str
    device: str

    def __str__(self) -> str:
        shape = f"batch={self.batch},heads={self.heads},seq={self.seq},dim={self.dim}"
        return f"{shape},causal={int(self.causal)},dtype={self.dtype},device={self.device}"

    @property
    def operations(self) -> float:
        """Two products of seq × seq × dim, a multiplication and an addition each; half of them if causal."""
        return 4.0 * self.batch * self.heads * self.seq**2 * self.dim * (0.5 if self.causal else 1.0)

    @property
    def bytes(self) -> int:
        """That must move: q, k and v in, the output out."""
        return 4 * self.batch * self.heads * self.seq * self.dim * dtype(self.dtype).itemsize

    @property
    def scores(self) -> int:
        """Bytes of one seq × seq matrix for every head: what the naive form writes down and a fused one does not."""
        return self.batch * self.heads * self.seq**2 * dtype(self.dtype).itemsize

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.dim)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def cell(told: Mapping[str, Any]) -> Cell:
    return Cell(**told)
