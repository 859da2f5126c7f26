"""The rules of number formats in exact fractions, for format_vectors.py.

It uses only the standard library and no code of Assay, because the reference must not share code with the formats under
test. Here a format is a sorted list of its non-negative values in which the nearest is searched; the code under test
computes it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from struct import pack, unpack

NAN, INF = "nan", "inf"
Value = tuple[bool, Fraction | str]
"""The sign (True for minus) and the absolute value: a fraction, NAN or INF."""
LARGEST = Fraction((2**24 - 1) * 2**104)
ZERO: Value = (False, Fraction(0))
NOT_A_NUMBER: Value = (False, NAN)


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if power(guess) <= value else guess - 1


def round_log2(value: Fraction) -> int:
    """Return log₂ value rounded to the nearest integer, by squares: √2 · 2^k is the boundary of k and k + 1."""
    below = floor_log2(value)
    return below + (value * value > 2 * power(2 * below))


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


# The bits of inputs and outputs.


def decode(word: int, bits: int) -> Value:
    """Return the value of a float32 or float64."""
    number = unpack(">f" if bits == 32 else ">d", word.to_bytes(bits // 8))[0]
    negative = bool(word >> (bits - 1))
    if number != number:
        return NOT_A_NUMBER
    return negative, INF if abs(number) == float("inf") else abs(Fraction(number))


def encode(value: Value, bits: int = 32) -> int:
    """Return the bits of a value that the float must hold exactly; anything else is a bug in this file."""
    negative, size = value
    number = float(size)
    assert isinstance(size, str) or Fraction(number) == size
    word = int.from_bytes(pack(">f" if bits == 32 else ">d", number))
    assert decode(word, bits)[1] == size
    return word | negative << (bits - 1)


def rounded(size: Fraction, bits: int) -> Fraction:
    """Round to the nearest float32, ties to even, at most the largest; or to float64, whose range suffices here."""
    if not size:
        return size
    smallest, fraction = (-126, 23) if bits == 32 else (-1022, 52)
    unit = power(max(floor_log2(size), smallest) - fraction)
    return min(round(size / unit) * unit, LARGEST)


def rounded32(size: Fraction) -> Fraction:
    return rounded(size, 32)


# Rules of formats for single values, and for groups.

Rule = Callable[[Sequence[Value]], list[Value]]
"""Maps values that share a scale to their quantised values."""


def nearest(size: Fraction, values: Sequence[Fraction]) -> Fraction:
    """Return the nearest value in a sorted list whose indices are codes. Ties go to the even index; larger sizes
    saturate at the last value."""
    place = bisect_left(values, size)
    if place == len(values):
        return values[-1]
    if place == 0:
        return values[0]
    low, high = size - values[place - 1], values[place] - size
    return values[place - 1 if low < high or (low == high and place % 2) else place]


def fixed(width: int, fraction: int) -> Rule:
    step, half = power(-fraction), 2 ** (width - 1)

    def one(value: Value) -> Value:
        negative, size = value
        if size == NAN:
            return ZERO
        most = half if negative else half - 1
        code = most if isinstance(size, str) else min(round(size / step), most)
        return negative and code > 0, code * step

    return lambda values: [one(v) for v in values]


@cache
def float_sizes(exponent: int, fraction: int, denormals: bool, specials: str) -> tuple[Fraction, ...]:
    """Return the values of all codes with sign bit 0, in ascending order."""
    bias = 2 ** (exponent - 1) - 1
    codes = list(range(2 ** (exponent + fraction)))
    if specials == "nan":
        codes.pop()
    if specials == "ieee":
        codes = codes[: -(2**fraction)]
    sizes = []
    for code in codes:
        field, low = code >> fraction, code % 2**fraction
        if field:
            sizes.append((1 + Fraction(low, 2**fraction)) * power(field - bias))
        elif denormals or not low:
            sizes.append(Fraction(low, 2**fraction) * power(1 - bias))
    return tuple(sizes)


def minifloat(exponent: int, fraction: int, denormals: bool = True, specials: str = "finite") -> Rule:
    sizes = float_sizes(exponent, fraction, denormals, specials)

    def one(value: Value) -> Value:
        negative, size = value
        if size == NAN:
            return ZERO if specials == "finite" else NOT_A_NUMBER
        if isinstance(size, str):
            return value if specials == "ieee" else (negative, sizes[-1])
        return negative, float_nearest(size, sizes, denormals)

    return lambda values: [one(v) for v in values]


def float_nearest(size: Fraction, sizes: Sequence[Fraction], denormals: bool) -> Fraction:
    """Return the nearest value. Without denormals the parity of indices is off by one from that of codes: the first
    value is zero, and the next has fraction 0."""
    if not denormals and size > sizes[1]:
        return nearest(size, sizes[1:])
    return nearest(size, sizes[:2] if not denormals else sizes) if size else size


def logarithmic(width: int, top: int) -> Rule:
    low = top - 2 ** (width - 1) + 2

    def one(value: Value) -> Value:
        negative, size = value
        if size == NAN:
            return ZERO
        exponent = top if isinstance(size, str) else min(round_log2(size), top) if size else low - 1
        return negative, power(exponent) if exponent >= low else Fraction(0)

    return lambda values: [one(v) for v in values]


def finite_group(rule: Callable[[list[tuple[bool, Fraction]]], list[Value]]) -> Rule:
    """Return the rule for groups in which a NaN or an infinity makes the whole group NaN."""

    def group(values: Sequence[Value]) -> list[Value]:
        numbers = [(sign, size) for sign, size in values if not isinstance(size, str)]
        return rule(numbers) if len(numbers) == len(values) else [NOT_A_NUMBER] * len(values)

    return group


def integer_scale(width: int, values: Sequence[tuple[bool, Fraction]]) -> Fraction:
    """Return the scale of integers: a bfloat16 up to 8 bits, a float32 above."""
    most, digits = 2 ** (width - 1) - 1, 7 if width <= 8 else 23
    ratio = max(size for _, size in values) / most
    scale = power(-126)
    if ratio > scale:
        unit = power(floor_log2(ratio) - digits)
        scale = round(ratio / unit) * unit
    limit = LARGEST / most
    unit = power(floor_log2(limit) - digits)
    return min(scale, limit // unit * unit)


def integer(width: int) -> Rule:
    most = 2 ** (width - 1) - 1

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        scale = integer_scale(width, values)
        codes = [min(round(size / scale), most) for _, size in values]
        return [(sign and code > 0, code * scale) for (sign, _), code in zip(values, codes, strict=True)]

    return finite_group(group)


def block_exponent(values: Sequence[tuple[bool, Fraction]], top: int) -> int:
    """Return the exponent of a block: of block floating point with `top` 0, or of minifloats whose largest exponent is
    `top`."""
    largest = max(size for _, size in values)
    return clamp(floor_log2(largest) - top, -127, 127 - top) if largest else -127


def block_float(width: int) -> Rule:
    most = 2 ** (width - 1) - 1

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        step = power(block_exponent(values, 0) - width + 2)
        codes = [min(round(size / step), most) for _, size in values]
        return [(sign and code > 0, code * step) for (sign, _), code in zip(values, codes, strict=True)]

    return finite_group(group)


def block_minifloat(exponent: int, fraction: int, denormals: bool = True, specials: str = "finite") -> Rule:
    sizes = float_sizes(exponent, fraction, denormals, specials)
    top = floor_log2(sizes[-1])

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        scale = power(block_exponent(values, top))
        return [(sign, float_nearest(size / scale, sizes, denormals) * scale) for sign, size in values]

    return finite_group(group)


def largest_power(width: int, values: Sequence[tuple[bool, Fraction]]) -> int:
    lowest = max(-127, 2 ** (width - 1) - 151)
    largest = max(size for _, size in values)
    return clamp(round_log2(largest), lowest, 127) if largest else lowest


def block_logarithmic(width: int) -> Rule:
    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        return logarithmic(width, largest_power(width, values))(values)

    return finite_group(group)


def binary(values: Sequence[Value]) -> list[Value]:
    return [(below_zero(v), Fraction(1)) for v in values]


def below_zero(value: Value) -> bool:
    return value[0] and value[1] not in (NAN, 0)


def mean(sizes: Sequence[Fraction]) -> Fraction:
    return rounded32(sum(sizes, Fraction(0)) / len(sizes))


@finite_group
def scaled_binary(values: list[tuple[bool, Fraction]]) -> list[Value]:
    scale = mean([size for _, size in values])
    return [(below_zero(v) and scale > 0, scale) for v in values]


def residual_means(values: Sequence[tuple[bool, Fraction]]) -> tuple[Fraction, list[Fraction], Fraction]:
    """Return the first mean, the residual of each value, and the mean of the residuals' absolute values."""
    first = mean([size for _, size in values])
    rest = [size - first if not below_zero((sign, size)) else first - size for sign, size in values]
    return first, rest, mean([abs(r) for r in rest])


@finite_group
def residual_binary(values: list[tuple[bool, Fraction]]) -> list[Value]:
    first, rest, second = residual_means(values)
    sums = [
        (-first if below_zero(v) else first) + (-second if r < 0 else second) for v, r in zip(values, rest, strict=True)
    ]
    return [(total < 0, rounded32(abs(total))) for total in sums]


RULES: dict[str, tuple[Rule, str, int]] = {
    "fixed:8:4": (fixed(8, 4), "element", 0),
    "fixed:2:0": (fixed(2, 0), "element", 0),
    "fixed:8:12": (fixed(8, 12), "element", 0),
    "fixed:16:8": (fixed(16, 8), "element", 0),
    "fixed:25:126": (fixed(25, 126), "element", 0),
    "fixed:26:0": (fixed(26, 0), "element", 0),
    "fixed:32:16": (fixed(32, 16), "element", 0),
    "int:8": (integer(8), "tensor", 0),
    "int:2": (integer(2), "tensor", 0),
    "int:4:channel": (integer(4), "channel", 0),
    "int:8:group=7": (integer(8), "group", 7),
    "int:3:group=16": (integer(3), "group", 16),
    "int:9:channel": (integer(9), "channel", 0),
    "int:16:group=7": (integer(16), "group", 7),
    "int:24": (integer(24), "tensor", 0),
    "int:30:channel": (integer(30), "channel", 0),
    "int:32:group=16": (integer(32), "group", 16),
    "minifloat:e4m3": (minifloat(4, 3), "element", 0),
    "minifloat:e4m3:nan": (minifloat(4, 3, specials="nan"), "element", 0),
    "minifloat:e4m3:no-denormals": (minifloat(4, 3, denormals=False), "element", 0),
    "minifloat:e5m2:ieee": (minifloat(5, 2, specials="ieee"), "element", 0),
    "minifloat:e5m2:no-denormals:ieee": (minifloat(5, 2, False, "ieee"), "element", 0),
    "minifloat:e2m1": (minifloat(2, 1), "element", 0),
    "minifloat:e3m2:no-denormals:nan": (minifloat(3, 2, False, "nan"), "element", 0),
    "minifloat:e8m7:ieee": (minifloat(8, 7, specials="ieee"), "element", 0),
    "log:4": (logarithmic(4, 0), "element", 0),
    "log:2:e=-3": (logarithmic(2, -3), "element", 0),
    "log:8:e=100": (logarithmic(8, 100), "element", 0),
    "log:5:e=-110": (logarithmic(5, -110), "element", 0),
    "bfp:8:block=16": (block_float(8), "group", 16),
    "bfp:8:block=32": (block_float(8), "group", 32),
    "bfp:2:block=4": (block_float(2), "group", 4),
    "bfp:24:block=5": (block_float(24), "group", 5),
    "block-minifloat:e2m1:block=32": (block_minifloat(2, 1), "group", 32),
    "block-minifloat:e4m3:nan:block=32": (block_minifloat(4, 3, specials="nan"), "group", 32),
    "block-minifloat:e5m2:ieee:block=7": (block_minifloat(5, 2, specials="ieee"), "group", 7),
    "block-minifloat:e3m2:no-denormals:block=16": (block_minifloat(3, 2, denormals=False), "group", 16),
    "block-log:4:block=16": (block_logarithmic(4), "group", 16),
    "block-log:2:block=3": (block_logarithmic(2), "group", 3),
    "block-log:8:block=8": (block_logarithmic(8), "group", 8),
    "binary": (binary, "element", 0),
    "binary:scaled": (scaled_binary, "tensor", 0),
    "binary:scaled:channel": (scaled_binary, "channel", 0),
    "binary:scaled:group=7": (scaled_binary, "group", 7),
    "binary:residual": (residual_binary, "tensor", 0),
    "binary:residual:channel": (residual_binary, "channel", 0),
    "binary:residual:group=16": (residual_binary, "group", 16),
}
"""Format name → the rule, which elements share a scale, and how many."""


WIDE = ("fixed:26:0", "fixed:32:16", "int:9:channel", "int:16:group=7", "int:24", "int:30:channel", "int:32:group=16")
"""Formats whose exact values are rounded to the tensor's dtype; it holds the values of all others exactly."""


def grouped(name: str, rows: Sequence[Sequence[Value]]) -> Iterator[Sequence[Value]]:
    """Yield the values of a matrix in groups that share a scale. A channel is a row; groups run along rows, and the
    last may be short."""
    _, kind, size = RULES[name]
    if kind == "tensor":
        yield [v for row in rows for v in row]
        return
    step = size or max(map(len, rows))
    for row in rows:
        yield from (row[i : i + step] for i in range(0, len(row), step))


def quantize(name: str, rows: Sequence[Sequence[Value]], bits: int = 32) -> list[list[Value]]:
    """Return the quantised values of a matrix of float32 or float64 values."""
    rule = RULES[name][0]
    flat = (v for group in grouped(name, rows) for v in rule(group))
    if name in WIDE:
        flat = ((sign, size if isinstance(size, str) else rounded(size, bits)) for sign, size in flat)
    return [[next(flat) for _ in row] for row in rows]
