"""Attention in float64, on rows chosen from the output, and the verdict on an arm's error there.

Each row of the output depends on one row of q and on all of k and v: some rows, exactly, say as much as all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.dtype import dtype
from assay.models.attention.cell import Cell
from assay.models.rounding import Errors, errors, share

if TYPE_CHECKING:
    import torch

ROWS = 512
"""Of each head at most: all of them up to this length, then as many, spread evenly, with the first and the last."""
ROUNDINGS = 8.0
"""Of the naive form, each at most one unit: product, scale, mask, exponential, sum, quotient, product, output."""
FAR = 16.0
"""The worst of all elements may be so many times farther off than their root mean square may be."""
_AT_ONCE = 1 << 26
"""Scores in float64 held at a time."""


@dataclass(frozen=True)
class Truth:
    rows: torch.Tensor
    exact: torch.Tensor
    """(batch, heads, rows, dim), float64."""

    def errors(self, out: torch.Tensor) -> Errors:
        return errors(out[..., self.rows, :], self.exact)


def truth(inputs: tuple[torch.Tensor, ...], cell: Cell) -> Truth:
    import torch

    q, k, v = (t.double() for t in inputs)
    count = min(cell.seq, ROWS)
    rows = torch.linspace(0, cell.seq - 1, count, device=q.device).round().long().unique()
    step = max(1, _AT_ONCE // (cell.batch * cell.heads * cell.seq))
    parts = []
    for some in rows.split(step):
        scores = q[..., some, :] @ k.transpose(-2, -1) * cell.scale
        if cell.causal:
            later = torch.arange(cell.seq, device=q.device) > some[:, None]
            scores = scores.masked_fill(later, -math.inf)
        parts.append(scores.softmax(-1) @ v)
    return Truth(rows, torch.cat(parts, -2))


def ceiling(cell: Cell) -> float:
    """Units (rms) that no right answer exceeds. Sums over the keys are taken in float32 at least, with terms as large
    as |v| while the output is smaller by the root of their number; the rest is a fixed number of roundings."""
    fraction = dtype(cell.dtype).fraction
    return ROUNDINGS + math.sqrt(cell.seq) * 2.0 ** (fraction - max(23, fraction))


def judge(mine: Errors, cell: Cell, plain: Errors | None) -> dict[str, Any]:
    """`plain` is the naive arm's error in the same format on the same inputs; without it, or for that arm itself, the
    ceiling alone is the limit. A share above 1 is wrong."""
    most = ceiling(cell)
    of_limit = max(mine.rms / most, mine.worst / (FAR * most), 10.0**9 * (mine.astray > 0))
    if plain is not None:
        of_limit = max(of_limit, share(mine, plain))
    return mine.to_dict() | {"share": of_limit, "limit": "naive's own error" if plain else "the ceiling"}


def controls(truth: Truth, inputs: tuple[torch.Tensor, ...], cell: Cell, plain: Errors | None) -> dict[str, bool]:
    """Are answers that are wrong on purpose seen as wrong? Zeros; a window that leaves out the first eighth of the
    keys; the rows of the next head."""
    import torch

    number = inputs[0].dtype
    lost = max(1, cell.seq // 8)
    q, k, v = (t.double() for t in inputs)
    at = truth.rows[-1:]
    window = torch.softmax(q[..., at, :] @ k[..., lost:, :].transpose(-2, -1) * cell.scale, -1) @ v[..., lost:, :]
    fakes = {"zeros": torch.zeros_like(truth.exact), "another row": truth.exact.roll(1, -2)}
    seen = {
        name: judge(errors(fake.to(number), truth.exact), cell, plain)["share"] > 1
        for name, fake in fakes.items()
        if cell.seq > 1
    }
    if cell.seq >= 8:
        seen["window"] = judge(errors(window.to(number), truth.exact[..., -1:, :]), cell, plain)["share"] > 1
    return seen
