"""Kinds of values: how the numbers of one input tensor are drawn. Each kind provokes a class of mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.dtype import DType
from assay.lazy import torch

BLOCK = 16_777_213
"""The largest prime below 2**24. A huge tensor repeats a block of so many values: elements a power of two apart then
differ, so that an index that wraps around is detected."""
_OCTAVES = 12
"""Rows near a constant have norms between a 64th and 64 times that."""
_FEW_BITS = 3
"""Significant bits of a repeated value: so few that the sum of 2**17 of them, or of their squares, is exact in float32
in any order."""


@dataclass(frozen=True)
class Range:
    """The values that one tensor may hold: finite ones of a number format from `low` to `high`, and special ones."""

    low: float
    high: float
    number: DType
    specials: tuple[float, ...] = ()

    @property
    def signed(self) -> bool:
        return self.low < 0


Draw = Callable[["torch.Tensor", Range, "torch.Generator"], "torch.Tensor"]
"""Turns unit normals into the values of one kind, before they are clamped to the range."""


def normal(shape: tuple[int, ...], rng: torch.Generator) -> torch.Tensor:
    """Return unit normals; beyond BLOCK elements they repeat."""
    block = torch.randn(min(math.prod(shape), BLOCK), generator=rng, dtype=torch.float32)
    return repeated(block, shape)


def repeated(block: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the block in this shape, repeated if the shape has more elements."""
    total, block = math.prod(shape), block.reshape(-1)
    if total > block.numel():
        block = block.repeat(-(-total // block.numel()))[:total]
    return block.view(shape)


def floats(kind: str, shape: tuple[int, ...], within: Range, rng: torch.Generator) -> torch.Tensor:
    """Return values of `kind`, within the range except for the special ones."""
    drawn = normal(shape, rng)
    if kind.startswith("near:"):
        values = _near(drawn, float(kind.partition(":")[2]), rng)
    else:
        values = _FLOATS[kind](drawn, within, rng) if kind in _FLOATS else drawn
    values = _fitted(values, within)
    if kind in ("special", "beyond"):
        zeros = (0.0, -0.0) if within.low <= 0 <= within.high else ()
        return sprinkled(values, (*within.specials, *zeros), rng)
    return _lines(values, within.specials) if kind == "lines" else values


_EXACT = 1 << 53
"""Integers up to here are exact in float64."""


def integers(kind: str, shape: tuple[int, ...], within: Range, rng: torch.Generator) -> torch.Tensor:
    """Return integers of `kind`: around the middle of their range, with a deviation of a sixteenth of it, unless the
    kind says otherwise; `wide`: anywhere in it."""
    low, high = within.low, within.high
    length = high - low
    if max(-low, high) > _EXACT and kind in ("ends", "wide", "beyond", "normal", "offset", "sorted"):
        return _long_integers(kind, shape, int(low), int(high), rng)
    if kind in ("wide", "beyond", "zeros", "sorted", "halfway"):
        values = torch.rand(shape, generator=rng, dtype=torch.float64) * length + low
    elif kind == "ends":
        ends = torch.tensor([low, min(low + 1, high), max(high - 1, low), high], dtype=torch.float64)
        values = ends[torch.randint(4, shape, generator=rng)]
    elif kind == "constant":
        values = _rows(torch.rand(shape, generator=rng, dtype=torch.float64) * length + low)
    elif kind == "alike":
        values = _alike(torch.rand(shape, generator=rng, dtype=torch.float64) * length + low, rng)
    elif kind == "ties":
        values = torch.randint(3, shape, generator=rng).double() + math.floor((low + high) / 2)
    else:
        away = length / 4 if kind == "offset" else 0.0
        width = 1.0 if kind == "small" else length / 16
        values = normal(shape, rng).double() * width + ((low + high) / 2 + away)
    values = values.round_().clamp_(low, high)
    if kind == "zeros":
        values = torch.where(torch.rand(shape, generator=rng) < 0.5, values.new_tensor(max(low, min(high, 0))), values)
    if kind == "sorted" and values.dim():
        values = values.sort(-1).values
    return sprinkled(values, within.specials, rng) if kind == "special" else values


def _long_integers(kind: str, shape: tuple[int, ...], low: int, high: int, rng: torch.Generator) -> torch.Tensor:
    """Return integers of which a float64 does not hold the last digits."""
    if kind == "ends":
        ends = torch.tensor([low, min(low + 1, high), max(high - 1, low), high])
        return ends[torch.randint(4, shape, generator=rng)]
    if kind == "normal":  # a sixteenth of the range around its middle
        middle, away = (low + high) // 2, (high - low) // 32
        low, high = middle - away, middle + away
    values = torch.randint(low, high, shape, generator=rng)
    return values.sort(-1).values if kind == "sorted" and values.dim() else values


def indices(kind: str, shape: tuple[int, ...], size: int, rng: torch.Generator) -> torch.Tensor:
    """Return integers from 0 to size − 1, spread evenly unless the kind says otherwise."""
    if kind == "ends":
        return torch.randint(2, shape, generator=rng) * (size - 1)
    drawn = torch.randint(max(1, size), shape, generator=rng)
    if kind == "alike":
        return _alike(drawn, rng).clamp(0, max(0, size - 1))
    if kind in ("constant", "ties"):
        return _rows(drawn) if kind == "constant" else drawn % min(3, max(1, size))
    return drawn.sort(-1).values if kind == "sorted" and drawn.dim() else drawn


def sprinkled(values: torch.Tensor, specials: Sequence[float], rng: torch.Generator) -> torch.Tensor:
    """Put special values at a few places. Two of three places are the same in all tensors of one size, so that special
    values meet each other; the third meets ordinary values. One place is the last element, with an infinity if there is
    one: a kernel may read it in place of what lies beyond, times zero."""
    if specials and values.numel():
        count = max(1, min(24, values.numel() // 64))
        where = torch.randint(values.numel(), (count,), generator=torch.Generator().manual_seed(values.numel()))
        where[2::3] = torch.randint(values.numel(), (len(range(2, count, 3)),), generator=rng)
        which = torch.randint(len(specials), (count,), generator=rng)
        if count > 1:
            where[-1] = values.numel() - 1
            infinite = [i for i, special in enumerate(specials) if math.isinf(special)]
            which[-1] = infinite[int(which[-1]) % len(infinite)] if infinite else which[-1]
        values.view(-1)[where] = torch.tensor(specials, dtype=values.dtype)[which]
    return values


def _fitted(values: torch.Tensor, within: Range) -> torch.Tensor:
    """Return the values fitted into the range. Where that has no negative numbers, their magnitudes are taken; where it
    is also shorter than 4, it is filled evenly."""
    if not within.signed:
        values = values.abs()
        if within.high - within.low < 4:
            values = within.low + (within.high - within.low) * (values % 1.0)
    elif within.high < 0:
        values = -values.abs()
    return values.clamp_(within.low, within.high)


def _offset(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    """Values far from zero, so that the terms of a variance nearly cancel, but near enough for narrow formats."""
    return drawn + min(1000.0, within.high / 4, 2.0 ** (within.number.fraction - 4))


def _wide(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    top = math.log2(max(abs(within.low), abs(within.high), 2.0**-20))
    exponents = torch.rand(drawn.shape, generator=rng, dtype=torch.float32) * (top + 20) - 20
    return torch.exp2(exponents.double()) * drawn.sign()


def _zeros(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    """Set half of the elements to zero and, if there are several rows, about a quarter of the rows."""
    zero = torch.rand(drawn.shape, generator=rng) < 0.5
    if drawn.dim() > 1:
        zero |= torch.rand((*drawn.shape[:-1], 1), generator=rng) < 0.25
    return torch.where(zero, torch.zeros_like(drawn).copysign(drawn), drawn)


def _subnormal(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    smallest = math.ldexp(1.0, within.number.min_exponent)
    return (drawn.double() * (smallest / 4)).clamp_(-smallest, smallest)


def _negative(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    """No element is positive, and every second row, or half of a vector, is so far below zero that a zero that does not
    belong there (padding, a wrong start of a maximum) outweighs it."""
    values = -drawn.abs()
    first, far = int(torch.randint(2, (1,), generator=rng)), min(1000.0, -within.low / 4)
    if values.dim() > 1 and values.numel():
        values.view(-1, values.shape[-1])[first::2] -= far
    else:
        values.view(-1)[first * values.numel() // 2 :] -= far
    return values


def _rows(values: torch.Tensor) -> torch.Tensor:
    """Repeat the first element of each row along the row."""
    return values[..., :1].expand_as(values).clone() if values.dim() else values


def _constant(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    fraction, exponent = torch.frexp(_rows(drawn))
    return torch.ldexp((fraction * 2**_FEW_BITS).round() / 2**_FEW_BITS, exponent)


def _ties(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    return (drawn * 2).round_().clamp_(-3, 3) / 2


def _outlier(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    if drawn.numel():
        place = int(torch.randint(drawn.numel(), (1,), generator=rng))
        drawn.view(-1)[place] = drawn.view(-1)[place].sign() * min(max(abs(within.low), abs(within.high)), 1e4) * 0.9
    return drawn


def _alike(drawn: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Set all elements to 0, or all to 1, except for one that is neither the first nor the last: a kernel may not take
    a tensor for one of zeros or ones after a look at some of its elements."""
    values = torch.full_like(drawn, float(torch.randint(2, (1,), generator=rng)))
    if drawn.numel() > 2:
        place = 1 + int(torch.randint(drawn.numel() - 2, (1,), generator=rng))
        values.view(-1)[place] = drawn.view(-1)[place]
    return values


def _sorted(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    return drawn.sort(-1).values if drawn.dim() else drawn


def _cancel(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    """Make every second element the negative of its neighbour, except for one part in 256."""
    if not drawn.dim() or drawn.shape[-1] < 2:
        return drawn
    length = drawn.shape[-1] // 2 * 2
    drawn[..., 1:length:2] = -drawn[..., 0:length:2] * (1 + 2.0**-8)
    return drawn


def _halfway(drawn: torch.Tensor, within: Range, rng: torch.Generator) -> torch.Tensor:
    """Odd multiples of the last place of the input's format within one binade, odd multiples of 1/128, and powers of
    two with their neighbours on both sides, where exponents change."""
    last = 2.0 ** -min(within.number.fraction, 22)
    fine = 1 + (2 * torch.randint(max(1, int(0.5 / last)), drawn.shape, generator=rng) + 1) * last
    coarse = (2 * torch.randint(128, drawn.shape, generator=rng) + 1) / 128
    powers = torch.exp2(torch.randint(-6, 7, drawn.shape, generator=rng).double())
    above = 2.0**-within.number.fraction  # below a power of two the spacing is half of that
    steps = torch.tensor([1 - above / 2, 1, 1 + above], dtype=torch.float64)
    beside = powers * steps[torch.randint(3, drawn.shape, generator=rng)]
    chance = torch.rand(drawn.shape, generator=rng)
    return torch.where(chance < 0.4, fine, torch.where(chance < 0.7, coarse, beside)).copysign(drawn)


def _near(drawn: torch.Tensor, constant: float, rng: torch.Generator) -> torch.Tensor:
    """The constant and its negative, their neighbours on both sides, and ordinary values among them. Every third row,
    for constants below 1 two of three, is instead scaled so that its norm is near the constant or near its square root:
    as an eps, the constant makes a difference there."""
    shape = drawn.shape
    around = constant * (1 + drawn * 2.0**-10)
    kind = torch.randint(4, drawn.shape, generator=rng)
    values = torch.where(kind == 0, torch.full_like(drawn, constant).copysign(drawn), around)
    values = torch.where(kind == 2, -around, values)
    values = torch.where(kind == 3, drawn, values)
    if drawn.dim() < 2 or not drawn.numel():
        return values
    values, drawn = values.view(-1, drawn.shape[-1]), drawn.view(-1, drawn.shape[-1])
    norms = [abs(constant), math.sqrt(abs(constant))][: 2 if abs(constant) < 1 else 1]
    for turn, norm in enumerate(norms):
        rows = drawn[turn + 1 :: 3]
        away = torch.exp2(torch.rand((len(rows), 1), generator=rng) * _OCTAVES - _OCTAVES / 2)
        values[turn + 1 :: 3] = rows * away * (norm / math.sqrt(drawn.shape[-1]))
    return values.view(shape)


def _lines(values: torch.Tensor, specials: Sequence[float]) -> torch.Tensor:
    """Fill every fourth row with one special value; of a vector, only an eighth for each special value. Another fourth
    of the rows has the first one as a mask leaves it: in the first half, the last half, or all but the last element."""
    rows = values.view(-1, values.shape[-1]) if values.dim() > 1 and values.numel() else values.view(-1)
    order = sorted(specials, key=lambda s: (s != -math.inf, not math.isnan(s)))
    for turn, special in enumerate(order[:3]):
        if rows.dim() > 1:
            rows[turn * 4 + 1 :: 12] = special
        else:
            rows[rows.numel() // 4 * turn : rows.numel() // 4 * turn + rows.numel() // 8] = special
    if order and rows.dim() > 1:
        half = rows.shape[1] // 2
        for turn, masked in enumerate((slice(half), slice(half, None), slice(-1))):
            rows[turn * 4 + 3 :: 12, masked] = order[0]
    return values


_FLOATS: dict[str, Draw] = {
    "small": lambda drawn, within, rng: drawn * 2.0**-10,
    "offset": _offset,
    "wide": _wide,
    "beyond": _wide,
    "zeros": _zeros,
    "subnormal": _subnormal,
    "negative": _negative,
    "constant": _constant,
    "ties": _ties,
    "outlier": _outlier,
    "alike": lambda drawn, within, rng: _alike(drawn * 3, rng),
    "sorted": _sorted,
    "cancel": _cancel,
    "halfway": _halfway,
}
