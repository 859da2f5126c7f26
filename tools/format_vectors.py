"""Writes conformance/formats.json: inputs and the only right values of number formats, computed with exact fractions.

python tools/format_vectors.py            write it
python tools/format_vectors.py --check    fail if it is not what this would write

The standard library alone, and nothing of Assay: what formats are held against must not share code with them. A
format is a sorted list of its non-negative values, and the nearest is searched in it; the code under test computes."""

from __future__ import annotations

import json
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from struct import pack, unpack
from typing import Any

FILE = Path(__file__).parents[1] / "conformance" / "formats.json"

NAN, INF = "nan", "inf"
Value = tuple[bool, Fraction | str]
"""The sign, true for minus, and the size: a fraction, NAN or INF."""
LARGEST = Fraction((2**24 - 1) * 2**104)
ZERO: Value = (False, Fraction(0))
NOT_A_NUMBER: Value = (False, NAN)


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if power(guess) <= value else guess - 1


def round_log2(value: Fraction) -> int:
    """By squares: √2 · 2^k divides k from k + 1."""
    below = floor_log2(value)
    return below + (value * value > 2 * power(2 * below))


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


# The bits of inputs and outputs.


def decode(word: int, bits: int) -> Value:
    """Of a float32 or float64."""
    number = unpack(">f" if bits == 32 else ">d", word.to_bytes(bits // 8))[0]
    negative = bool(word >> (bits - 1))
    if number != number:
        return NOT_A_NUMBER
    return negative, INF if abs(number) == float("inf") else abs(Fraction(number))


def encode(value: Value, bits: int = 32) -> int:
    """Of a value that the float holds; another is a mistake in this file."""
    negative, size = value
    number = float(size)
    assert isinstance(size, str) or Fraction(number) == size
    word = int.from_bytes(pack(">f" if bits == 32 else ">d", number))
    assert decode(word, bits)[1] == size
    return word | negative << (bits - 1)


def rounded32(size: Fraction) -> Fraction:
    """To the nearest float32, ties to even, at most the largest."""
    if not size:
        return size
    unit = power(max(floor_log2(size), -126) - 23)
    return min(round(size / unit) * unit, LARGEST)


# Formats: of one value, of a group.

Rule = Callable[[Sequence[Value]], list[Value]]
"""What becomes of the values that share a scale."""


def nearest(size: Fraction, values: Sequence[Fraction]) -> Fraction:
    """In a sorted list whose places are codes: a tie goes to the even place, and beyond the last is the last."""
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
    """The values of all codes with the sign bit 0, from the smallest."""
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
    """Without denormals, places are one off the parity of codes: the first is zero, the next has the fraction 0."""
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
    """A NaN or an infinity makes all of its group NaN."""

    def group(values: Sequence[Value]) -> list[Value]:
        numbers = [(sign, size) for sign, size in values if not isinstance(size, str)]
        return rule(numbers) if len(numbers) == len(values) else [NOT_A_NUMBER] * len(values)

    return group


def integer(width: int) -> Rule:
    most = 2 ** (width - 1) - 1

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        ratio = max(size for _, size in values) / most
        scale = power(-126)
        if ratio > scale:
            unit = power(floor_log2(ratio) - 7)
            scale = round(ratio / unit) * unit
        limit = LARGEST / most
        unit = power(floor_log2(limit) - 7)
        scale = min(scale, limit // unit * unit)
        codes = [min(round(size / scale), most) for _, size in values]
        return [(sign and code > 0, code * scale) for (sign, _), code in zip(values, codes, strict=True)]

    return finite_group(group)


def block_float(width: int) -> Rule:
    most = 2 ** (width - 1) - 1

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        largest = max(size for _, size in values)
        step = power((clamp(floor_log2(largest), -127, 127) if largest else -127) - width + 2)
        codes = [min(round(size / step), most) for _, size in values]
        return [(sign and code > 0, code * step) for (sign, _), code in zip(values, codes, strict=True)]

    return finite_group(group)


def block_minifloat(exponent: int, fraction: int, denormals: bool = True, specials: str = "finite") -> Rule:
    sizes = float_sizes(exponent, fraction, denormals, specials)
    top = floor_log2(sizes[-1])

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        largest = max(size for _, size in values)
        scale = power(clamp(floor_log2(largest) - top, -127, 127 - top) if largest else -127)
        return [(sign, float_nearest(size / scale, sizes, denormals) * scale) for sign, size in values]

    return finite_group(group)


def block_logarithmic(width: int) -> Rule:
    lowest = max(-127, 2 ** (width - 1) - 151)

    def group(values: list[tuple[bool, Fraction]]) -> list[Value]:
        largest = max(size for _, size in values)
        return logarithmic(width, clamp(round_log2(largest), lowest, 127) if largest else lowest)(values)

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


@finite_group
def residual_binary(values: list[tuple[bool, Fraction]]) -> list[Value]:
    first = mean([size for _, size in values])
    rest = [size - first if not below_zero((sign, size)) else first - size for sign, size in values]
    second = mean([abs(r) for r in rest])
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
    "int:8": (integer(8), "tensor", 0),
    "int:2": (integer(2), "tensor", 0),
    "int:4:channel": (integer(4), "channel", 0),
    "int:8:group=7": (integer(8), "group", 7),
    "int:3:group=16": (integer(3), "group", 16),
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
"""By the names that Assay reads: the rule, which elements share a scale, and how many."""


def quantize(name: str, rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """A matrix; a channel is a row, groups lie along the rows and the last may be short."""
    rule, kind, size = RULES[name]
    if kind == "tensor":
        flat = iter(rule([v for row in rows for v in row]))
        return [[next(flat) for _ in row] for row in rows]
    step = size or max(map(len, rows))
    return [[v for i in range(0, len(row), step) for v in rule(row[i : i + step])] for row in rows]


# What is in the file.


def word(value: float | Fraction) -> int:
    return encode((value < 0, rounded32(abs(Fraction(value)))))


def drawn(rng: random.Random, exponents: tuple[int, int], count: int) -> list[int]:
    """float32 patterns with exponent fields in a range."""
    return [rng.getrandbits(1) << 31 | rng.randint(*exponents) << 23 | rng.getrandbits(23) for _ in range(count)]


SPECIAL = [0x7FC00000, 0x7F800000, 0xFF800000]


def cases(name: str, rng: random.Random) -> Iterator[tuple[str, list[list[int]]]]:
    """Named rows of float32 patterns. Means are of values whose sum float64 holds exactly."""
    _, kind, _ = RULES[name]
    summed = "scaled" in name or "residual" in name
    yield "of about one size", [drawn(rng, (118, 131), 37) for _ in range(3)]
    yield "zeros", [[0, 0x80000000, 0, 0, 0x80000000], [0x80000000] * 5]
    ends = drawn(rng, (130, 135), 20)
    yield "a large value beside small ones", [[*ends[:6], word(1000), word(-3), *ends[6:]]]
    if kind == "element":
        yield "not finite", [[*SPECIAL, word(1.5)]]
    else:
        yield "not finite", [[word(1.0)] * 40 + [bad] + [word(-0.5)] * 3 for bad in SPECIAL]
    if summed:
        yield "ties of a mean", [[word(1 + power(-23)), word(1)], [word(1 + 3 * power(-23)), word(-1 - 2 * power(-23))]]
        return
    yield "any size", [drawn(rng, (0, 254), 24) for _ in range(2)]
    yield "ends of float32", [[0x7F7FFFFF, 0xFF7FFFFF, 1, 0x80000001, 0x007FFFFF, 0x00800000, word(1)]]
    for low in (0, 1, 8, 30):
        yield f"small, exponent fields from {low}", [drawn(rng, (low, low + 6), 20)]
    largest = [[0x7F000000 | rng.getrandbits(23) for _ in range(9)] for _ in range(3)]
    yield "large", largest
    yield "halves", [[word(Fraction(k, 2)) for k in range(-20, 21)], [word(Fraction(k, 32)) for k in range(-20, 21)]]
    yield "around ties", [around_ties(name)]
    if name == "int:8":
        scale = Fraction(129, 128)
        ties = [word(127 * scale), *(word(scale * Fraction(k, 2)) for k in range(-9, 11))]
        yield "ties beside a scale of 129/128", [ties]
        between = Fraction(2 * 128 + 1, 256) * 127
        yield "the scale is a tie", [[word(between), word(1)], [word(Fraction(2 * 129 + 1, 256) * 127), word(1)]]


def around_ties(name: str) -> list[int]:
    """Midpoints of neighbouring values, with the floats beside them; beside a one where a scale is shared."""
    _, kind, _ = RULES[name]
    base = [word(1)] if kind != "element" else []
    outputs = quantize(name, [[decode(word(Fraction(k, 64)), 32) for k in range(64)]])[0]
    sizes = sorted({size for _, size in outputs if isinstance(size, Fraction)})
    middles = [word((a + b) / 2) for a, b in pairwise(sizes)][:12]
    return base + [near for m in middles for near in (m - 1, m, m + 1, m | 1 << 31)] or [word(0.5)]


def document() -> dict[str, Any]:
    listed = []
    for name in RULES:
        rng = random.Random(name)  # a generator whose sequence Python keeps, seeded by text
        for about, rows in cases(name, rng):
            values = quantize(name, [[decode(w, 32) for w in row] for row in rows])
            listed.append(
                {
                    "format": name,
                    "about": about,
                    "rows": len(rows),
                    "cols": len(rows[0]),
                    "x": words(rows),
                    "values": words([[encode(v) for v in row] for row in values]),
                }
            )
    return {"explained": "conformance/README.md", "cases": listed}


def words(rows: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{w:08x}" for row in rows for w in row)


def main() -> None:
    text = json.dumps(document(), indent=1) + "\n"
    if "--check" in sys.argv:
        if FILE.read_text() != text:
            sys.exit(f"{FILE.name} is not what the rules give: run `python tools/format_vectors.py`")
        return
    FILE.write_text(text)


if __name__ == "__main__":
    main()
