"""Sums, running sums, variances and matrix products in float32, in the orders in which kernels compute them."""

from __future__ import annotations

import math
from typing import Any

from assay.lazy import np, torch

_COMPENSATED = 512
"""The most terms of one compensated accumulator. Longer rows have several, since evaluating a single one takes too
long."""
_FACTORS = tuple(math.sqrt(n) / 8 for n in (17, 23, 29, 37, 47, 59))
"""Factors for the terms of a mean, which a kernel may scale before it adds them. Equal terms then round differently,
and the loss varies with the factor, so the worst of several counts. The factors are irrational, so that a product with
a short number is not short too."""
_MERGES = 4096
"""The most blocks that are merged into one running mean, to limit the time as well."""
_TERMS = 8
"""Products that a tensor core of the A100 adds at once. Hopper's add 16, and lose less."""
WORK = 1 << 29
"""Multiplications of a matrix product beyond which several terms are added at a time."""


def reduce(x: torch.Tensor, how: str) -> torch.Tensor:
    """Return the sum over the last dimension in the given order."""
    n = x.shape[-1]
    if n <= 1 or how == "plain":
        return x.sum(-1)
    if how in ("reversed", "backwards"):
        return reduce(x.flip(-1), "lanes 8" if how == "reversed" else "serial")
    if how.startswith("serial from"):
        return reduce(x.roll(-n * int(how[-3]) // 3, -1), "serial")
    if how == "pairwise":
        while x.shape[-1] > 1:
            odd = x[..., -1:] if x.shape[-1] % 2 else x[..., :0]
            even = x.shape[-1] // 2 * 2
            x = torch.cat([x[..., 0:even:2] + x[..., 1:even:2], odd], -1)
        return x[..., 0]
    lanes = 1 if how in ("serial", "kahan") else int(how.partition(" ")[2])
    if how == "kahan":
        lanes = -(-n // _COMPENSATED)
    padded = torch.nn.functional.pad(x, (0, -n % lanes)).unflatten(-1, (-1, lanes))
    total = _compensated(padded) if how == "kahan" else _one_after_another(padded)
    return reduce(total, "pairwise") if lanes > 1 else total[..., 0]


def _one_after_another(x: torch.Tensor) -> torch.Tensor:
    """Return the serial sum over the dimension before the last. NumPy's running sums keep the format of the terms."""
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=-2)[..., -1, :].copy())


def scanned(x: torch.Tensor, how: str, ufunc: Any) -> torch.Tensor:
    """Return the running sums or products over the last dimension: one by one, or in blocks with a carry."""
    lanes = int(how.partition(" ")[2]) if how.startswith("lanes") else {"reversed": 8, "pairwise": 64}.get(how, 0)
    n = x.shape[-1]
    with np.errstate(all="ignore"):
        if not lanes or n <= lanes:
            return torch.from_numpy(ufunc.accumulate(x.numpy(), axis=-1))
        whole = n // lanes * lanes
        blocks = ufunc.accumulate(x[..., :whole].unflatten(-1, (-1, lanes)).numpy(), axis=-1)
        carries = ufunc.accumulate(blocks[..., -1], axis=-1)
        blocks[..., 1:, :] = ufunc(blocks[..., 1:, :], carries[..., :-1, None])
        rest = ufunc(ufunc.accumulate(x[..., whole:].numpy(), axis=-1), carries[..., -1:])
    return torch.cat([torch.from_numpy(blocks).flatten(-2), torch.from_numpy(rest)], -1)


def scaled(x: torch.Tensor) -> torch.Tensor:
    """Return the sum over the last dimension of terms that are scaled first, with the factor that is farthest off."""
    sums = torch.stack([reduce(x * factor, "serial") / factor for factor in _FACTORS])
    worst = (sums.double() - x.double().sum(-1)).abs().nan_to_num(0.0, 0.0).argmax(0, keepdim=True)
    return sums.gather(0, worst)[0]


def _compensated(x: torch.Tensor) -> torch.Tensor:
    """Return the sum over the dimension before the last by Kahan's method."""
    total, lost = torch.zeros_like(x[..., 0, :]), torch.zeros_like(x[..., 0, :])
    for step in range(x.shape[-2]):
        corrected = x[..., step, :] - lost
        after = total + corrected
        lost = torch.where(after.isfinite(), (after - total) - corrected, torch.zeros_like(lost))
        total = after
    return total


def moved(x: torch.Tensor, dims: Any) -> tuple[torch.Tensor, list[int]]:
    """Return the tensor with the reduced dimensions flattened into the last one, and those dimensions."""
    chosen = [d % max(1, x.dim()) for d in ([dims] if isinstance(dims, int) else dims or range(x.dim()))]
    kept = [d for d in range(x.dim()) if d not in chosen]
    moved = x.permute(*kept, *chosen)
    return moved.reshape(*(x.shape[d] for d in kept), -1), sorted(chosen)


def kept(value: torch.Tensor, chosen: list[int], keepdim: bool) -> torch.Tensor:
    if keepdim:
        for d in chosen:
            value = value.unsqueeze(d)
    return value


def welford(x: torch.Tensor, lanes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the sum of squared deviations over the last dimension. Each lane merges one block of terms
    after another into its running mean; the lanes are merged at the end. Long rows have longer blocks, to save time."""
    n = x.shape[-1]
    lanes = min(lanes, max(1, n))
    block = max(1, n // lanes // _MERGES)
    whole = n // (lanes * block) * lanes * block
    parts = x[..., :whole].unflatten(-1, (-1, lanes, block))
    running = _Running(torch.zeros_like(parts[..., 0, :, 0]))
    for step in range(parts.shape[-3]):
        running.merge(*two_passes(parts[..., step, :, :]), block)
    merged = _Running(running.mean[..., 0], running.squares[..., 0], running.count)
    for lane in range(1, lanes):
        merged.merge(running.mean[..., lane], running.squares[..., lane], running.count)
    if whole < n:
        merged.merge(*two_passes(x[..., whole:]), n - whole)
    return merged.mean, merged.squares


def by_terms(x: torch.Tensor, reciprocal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same by the textbook's update, whose rounded mean costs more where terms are nearly equal. Long rows
    are cut into lanes, which are merged."""
    n = x.shape[-1]
    lanes = -(-n // _MERGES)
    whole = n // lanes
    parts = x[..., : whole * lanes].unflatten(-1, (lanes, whole))
    mean, squares = torch.zeros_like(parts[..., 0]), torch.zeros_like(parts[..., 0])
    for count in range(1, whole + 1):
        term = parts[..., count - 1]
        off = term - mean
        mean = mean + (off * (1 / torch.tensor(float(count))) if reciprocal else off / count)
        squares = squares + off * (term - mean)
    merged = _Running(mean[..., 0], squares[..., 0], whole)
    for lane in range(1, lanes):
        merged.merge(mean[..., lane], squares[..., lane], whole)
    if whole * lanes < n:
        merged.merge(*two_passes(x[..., whole * lanes :]), n - whole * lanes)
    return merged.mean, merged.squares


def two_passes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x.mean(-1)
    return mean, (x - mean[..., None]).square().sum(-1)


def on_tensor_cores(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product of two matrices, or batches of them, whose sum is truncated to float32 after every few
    terms."""
    step = max(_TERMS, a.numel() * b.shape[-1] // WORK)
    total = a.new_zeros(*a.shape[:-1], b.shape[-1])
    for k in range(0, a.shape[-1], step):
        total = _truncated(total.double() + a[..., k : k + step].double() @ b[..., k : k + step, :].double())
    return total


def _truncated(x: torch.Tensor) -> torch.Tensor:
    """Return float64 values in float32, rounded towards zero."""
    nearest = x.float()
    return torch.where(nearest.double().abs() > x.abs(), nearest.nextafter(torch.zeros_like(nearest)), nearest)


class _Running:
    """Mean and sum of squared deviations of the terms so far."""

    def __init__(self, mean: torch.Tensor, squares: torch.Tensor | None = None, count: int = 0) -> None:
        self.mean, self.squares = mean, torch.zeros_like(mean) if squares is None else squares
        self.count = count

    def merge(self, mean: torch.Tensor, squares: torch.Tensor, count: int) -> None:
        total = self.count + count
        delta = mean - self.mean
        self.mean = self.mean + delta * (count / total)
        self.squares = self.squares + squares + delta * delta * (self.count * count / total)
        self.count = total
