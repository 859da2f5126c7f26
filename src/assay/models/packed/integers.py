"""Integers with a bfloat16 scale per group, as tensors, by the rule of `int:WIDTH:group=N` (docs/formats.md), in
float64, where every comparison is exact. Two four-bit codes share a byte."""

from __future__ import annotations

from math import frexp, nan

import torch
from torch.nn.functional import pad

SLAB = 1 << 22
"""Elements quantised at once, few enough that their float64 copies are small beside a weight."""
LARGEST = torch.finfo(torch.float32).max
SMALLEST = -126
"""Exponent of the smallest normal bfloat16."""


def quantized(weight: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return codes, offset by 2^(bits − 1), as uint8, n × ⌈k · bits / 8⌉, and scales as bfloat16, n × ⌈k / group⌉."""
    rows, cols = weight.shape
    count = -(-cols // group)
    codes = torch.empty(rows, cols, dtype=torch.uint8, device=weight.device)
    scales = torch.empty(rows, count, dtype=torch.bfloat16, device=weight.device)
    step = max(1, SLAB // max(1, cols))
    for top in range(0, rows, step):
        slab = pad(weight[top : top + step].double(), (0, count * group - cols)).view(-1, count, group)
        finite = slab.isfinite().all(-1, keepdim=True)
        size = torch.where(finite, slab.abs(), 0.0)
        scale = _scale(size.amax(-1, keepdim=True), 2 ** (bits - 1) - 1)
        code = _nearest(size, scale).clamp(max=2 ** (bits - 1) - 1).copysign(slab) + 2 ** (bits - 1)
        codes[top : top + step] = torch.where(finite, code, 2 ** (bits - 1)).flatten(1)[:, :cols]
        scales[top : top + step] = torch.where(finite, scale, nan)[:, :, 0]
    return (codes if bits == 8 else paired(codes)), scales


def dequantized(codes: torch.Tensor, scales: torch.Tensor, bits: int, group: int, cols: int) -> torch.Tensor:
    """Return the values in float32, which holds every product of a code and a scale exactly."""
    flat = codes if bits == 8 else unpaired(codes, cols)
    spread = scales.float()[:, :, None].expand(-1, -1, min(group, cols)).flatten(1)[:, :cols]
    return (flat.float() - 2 ** (bits - 1)) * spread


def paired(codes: torch.Tensor) -> torch.Tensor:
    """Pack two neighbours into a byte, the first in the lower half. A last odd one is paired with the code of zero."""
    even = pad(codes, (0, codes.shape[1] % 2), value=8)
    return even[:, ::2] | even[:, 1::2] << 4


def unpaired(pairs: torch.Tensor, cols: int) -> torch.Tensor:
    return torch.stack((pairs & 15, pairs >> 4), -1).flatten(1)[:, :cols]


def _scale(largest: torch.Tensor, most: int) -> torch.Tensor:
    """Return largest / most as a bfloat16, rounded to nearest even, at least 2^−126 and such that `most` times it is a
    finite float32."""
    exponent = torch.frexp(largest / most).exponent - 1
    exponent = torch.where(largest == 0, SMALLEST, exponent).clamp(SMALLEST, 127)
    unit = (exponent.long() - 7 + 1023 << 52).view(torch.float64)
    unit_of_largest = 2.0 ** (frexp(LARGEST / most)[1] - 8)
    limit = LARGEST / most // unit_of_largest * unit_of_largest
    return (_nearest(largest, most * unit) * unit).clamp(2.0**SMALLEST, limit)


def _nearest(size: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Return size / step rounded to the nearest integer, ties to even. The quotient may be rounded onto a tie, so size
    is compared with the tie, which float64 holds exactly."""
    below = (size / step).floor()
    tie = step * (below + 0.5)
    return below + ((size > tie) | ((size == tie) & (below % 2 == 1)))
