"""Writes conformance/mxint8.json: inputs and the correct outputs of MXINT8, computed with exact fractions.

python tools/mx_vectors.py            write it
python tools/mx_vectors.py --check    fail if it is not what this would write

It uses only the standard library and no code of Assay, because the reference must not share code with the kernels."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "conformance" / "mxint8.json"
NAN = 255
"""The E8M0 code that is not a power of two."""

Value = Fraction | None
"""An exact value; None: NaN or an infinity."""


@dataclass(frozen=True)
class Format:
    """A binary float: sign, exponent, fraction."""

    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def top(self) -> int:
        """The exponent field of infinities and NaN."""
        return (1 << self.exponent) - 1

    @property
    def infinity(self) -> int:
        return self.top << self.fraction

    @property
    def nan(self) -> int:
        return self.infinity | 1 << (self.fraction - 1)

    def decode(self, pattern: int) -> Value:
        field, fraction = pattern >> self.fraction & self.top, pattern & ((1 << self.fraction) - 1)
        if field == self.top:
            return None
        whole = fraction + (1 << self.fraction) if field else fraction
        size = whole * Fraction(2) ** (max(field, 1) - self.bias - self.fraction)
        return -size if pattern >> (self.bits - 1) else size

    def encode(self, value: Value) -> int:
        """Round to nearest, ties to even, beyond the largest to infinity; None gives the usual NaN."""
        if value is None:
            return self.nan
        sign = (value < 0) << (self.bits - 1)
        if value == 0:
            return sign
        exponent = max(floor_log2(abs(value)), 1 - self.bias)
        steps = round(abs(value) / Fraction(2) ** (exponent - self.fraction))  # Python rounds ties to even
        # A carry of the fraction into the exponent gives the next binade, or the step from subnormal to normal.
        pattern = ((exponent + self.bias - 1) << self.fraction) + steps
        return sign | min(pattern, self.infinity)


FORMATS = {"fp32": Format(8, 23), "bf16": Format(8, 7), "fp16": Format(5, 10)}


def floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def quantize_block(values: Sequence[Value]) -> tuple[list[int], int]:
    """Return the elements (−127…127) of one block, and its E8M0 code."""
    finite = [v for v in values if v is not None]
    if len(finite) < len(values):
        return [0] * len(values), NAN
    largest = max(map(abs, finite))
    exponent = max(-127, min(127, floor_log2(largest))) if largest else -127
    codes = [round(v / Fraction(2) ** exponent * 64) for v in finite]
    return [max(-127, min(127, c)) for c in codes], exponent + 127


def quantize(rows: Sequence[Sequence[Value]], block: int) -> tuple[list[list[int]], list[list[int]]]:
    """Quantise rows in blocks along them; the last block of a row may be short."""
    elements: list[list[int]] = []
    scales: list[list[int]] = []
    for row in rows:
        parts = [quantize_block(row[i : i + block]) for i in range(0, len(row), block)]
        elements.append([code for codes, _ in parts for code in codes])
        scales.append([scale for _, scale in parts])
    return elements, scales


def dequantize(elements: Sequence[Sequence[int]], scales: Sequence[Sequence[int]], block: int) -> list[list[Value]]:
    def value(code: int, scale: int) -> Value:
        return None if scale == NAN else Fraction(code, 64) * Fraction(2) ** (scale - 127)

    return [[value(c, s[i // block]) for i, c in enumerate(e)] for e, s in zip(elements, scales, strict=True)]


# The content of the file.


def words(rows: Sequence[Sequence[int]], bits: int) -> str:
    """Return the numbers in hexadecimal, separated by spaces, negative ones in two's complement."""
    return " ".join(f"{v & ((1 << bits) - 1):0{bits // 4}x}" for row in rows for v in row)


def quantized(name: str, why: str, patterns: Sequence[Sequence[int]], number: str = "fp32", block: int = 32) -> dict:
    form = FORMATS[number]
    elements, scales = quantize([[form.decode(p) for p in row] for row in patterns], block)
    back = [[FORMATS["fp32"].encode(v) for v in row] for row in dequantize(elements, scales, block)]
    return {
        "name": name,
        "why": why,
        "dtype": number,
        "block": block,
        "rows": len(patterns),
        "cols": len(patterns[0]),
        "x": words(patterns, form.bits),
        "elements": words(elements, 8),
        "scales": words(scales, 8),
        "back": words(back, 32),
    }


def fp32(*values: float | Fraction) -> list[int]:
    return [FORMATS["fp32"].encode(Fraction(v)) for v in values]


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def golden() -> Iterator[dict]:
    yield quantized("ones", "1.0 is held exactly", [fp32(*[1.0] * 32)])
    near = [1.9999, -1.9999] * 16
    yield quantized("saturated", "±1.9999 rounds to 128, which saturates to 127: ±1.984375", [fp32(*near)])
    ties = [1.0, 1 / 128, 3 / 128, 5 / 128, -1 / 128, -3 / 128, -5 / 128] + [0.0] * 25
    yield quantized("ties", "beside 1.0, k/128 is half a step for odd k: to even, 0, 2 and 2", [fp32(*ties)])
    below = [[FORMATS["fp32"].encode(power(k)) - 1] * 32 for k in range(-125, 128, 4)]
    yield quantized(
        "below a power of two", "the float below 2^k keeps the exponent k − 1 (its log2, rounded, is k)", below
    )
    yield quantized("largest", "FLT_MAX saturates to 1.984375·2^127", [[0x7F7FFFFF] * 32, [0xFF7FFFFF] * 32])
    yield quantized("2^-130", "subnormal, under the smallest scale 2^-127: code 8", [fp32(*[power(-130)] * 32)])
    yield quantized("2^-140", "less than half a step of the smallest scale: 0", [fp32(*[power(-140)] * 32)])


def edges() -> Iterator[dict]:
    one, minus_zero, inf, nan = 0x3F800000, 0x80000000, 0x7F800000, 0x7FC00000
    yield quantized("zeros", "a zero block has the scale 0 and stays zero", [[0] * 32, [minus_zero] * 32])
    rows = [[one] * 31 + [bad] for bad in (nan, inf, inf | 1 << 31, 0xFF800001)]
    yield quantized("not finite", "NaN or Inf anywhere: the scale is NaN (ff), the elements are 0", rows)
    yield quantized("beside a NaN", "only the block that holds it is NaN", [[one] * 40 + [nan] + [one] * 55])
    steps = [fp32(*(power(e) for _ in range(32))) for e in range(-149, -120)]
    yield quantized("around the smallest scale", "2^-149 to 2^-121, subnormals among them", steps)
    half = [fp32(power(-133) * Fraction(k, 2)) * 32 for k in range(1, 12)]
    yield quantized("subnormal ties", "halves of the smallest step, 2^-133", half)
    small = [[FORMATS["fp32"].encode(power(e)), 1, 0x00400000, 0x007FFFFF, 0x00800000] * 2 for e in range(-127, -112)]
    yield quantized("subnormals beside larger values", "flushing subnormals to zero changes codes here", small, block=5)
    yield quantized("a small value beside a large one", "is lost", [fp32(1.0, power(-8), power(-7), power(-6))])
    yield quantized("a single column", "one short block", [fp32(v) for v in (1.0, -3.0, 0.1)], block=32)
    for block in (1, 7, 16, 64, 128):
        spread = [fp32(*(Fraction(3 * i % 37 - 18, 1 << (i % 11)) for i in range(131)))]
        yield quantized(f"blocks of {block}", "131 columns: the last block is short", spread, block=block)
    for number in ("bf16", "fp16"):
        form = FORMATS[number]
        every = [list(range(start, start + 32)) for start in range(0, form.infinity, form.infinity // 31)]
        yield quantized(f"{number}, runs of patterns", "neighbouring bit patterns, from subnormals up", every, number)
        last = [[form.infinity - 1] * 32, [form.infinity] * 32, [1] * 32, [form.nan] + [1] * 31]
        yield quantized(f"{number}, ends", "the largest, infinity, the smallest subnormal, NaN", last, number)


def drawn() -> Iterator[dict]:
    """Yield cases of random bit patterns, and of similar sizes. Python guarantees the generator's sequence."""
    rng = random.Random(8)
    for index in range(36):
        number = ("fp32", "bf16", "fp16")[index % 3]
        form = FORMATS[number]
        block, cols = rng.choice((1, 3, 16, 24, 32, 64)), rng.randint(1, 100)
        kind = "any patterns" if index % 2 else "within 2^12 of each other"
        rows = []
        for _ in range(3):
            base = rng.randrange(form.top - 12)
            fields = [rng.getrandbits(form.exponent) if index % 2 else base + rng.randrange(12) for _ in range(cols)]
            rows.append(
                [
                    rng.getrandbits(1) << (form.bits - 1) | f << form.fraction | rng.getrandbits(form.fraction)
                    for f in fields
                ]
            )
        yield quantized(f"drawn {index}", kind, rows, number, block)


def unpacked() -> Iterator[dict]:
    """Yield cases of dequantisation, with the results in every output format."""
    codes = [-128, -127, -64, -3, -1, 0, 1, 2, 5, 64, 96, 127]
    cases = [
        ("every scale", codes * 256, list(range(256)), len(codes)),
        ("every code", list(range(-128, 128)), [127], 256),
        ("every code, fp16 subnormals", list(range(-128, 128)), [127 - 15], 256),
    ]
    for name, elements, scales, block in cases:
        values = dequantize([elements], [scales], block)
        yield {
            "name": name,
            "block": block,
            "rows": 1,
            "cols": len(elements),
            "elements": words([elements], 8),
            "scales": words([scales], 8),
            **{n: words([[f.encode(v) for v in row] for row in values], f.bits) for n, f in FORMATS.items()},
        }


def document() -> dict[str, Any]:
    return {
        "format": "MXINT8",
        "explained": "conformance/README.md",
        "quantize": [*golden(), *edges(), *drawn()],
        "dequantize": list(unpacked()),
    }


def main() -> None:
    text = json.dumps(document(), indent=1) + "\n"
    if "--check" in sys.argv:
        if FILE.read_text() != text:
            sys.exit(f"{FILE.name} is not what the rule gives: run `python tools/mx_vectors.py`")
        return
    FILE.write_text(text)


if __name__ == "__main__":
    main()
