"""Writes conformance/formats.json: inputs and the correct values of number formats, computed with exact fractions.

python tools/format_vectors.py            write it
python tools/format_vectors.py --check    fail if it is not what this would write

It uses only the standard library and no code of Assay, because the reference must not share code with the formats under
test. The rules are in format_rules.py, the codes of values in format_codes.py."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from format_codes import coded
from format_rules import RULES, decode, encode, power, quantize, rounded32

FILE = Path(__file__).parents[1] / "conformance" / "formats.json"


def word(value: float | Fraction) -> int:
    return encode((value < 0, rounded32(abs(Fraction(value)))))


def drawn(rng: random.Random, exponents: tuple[int, int], count: int) -> list[int]:
    """Draw float32 patterns with exponent fields in a range."""
    return [rng.getrandbits(1) << 31 | rng.randint(*exponents) << 23 | rng.getrandbits(23) for _ in range(count)]


SPECIAL = [0x7FC00000, 0x7F800000, 0xFF800000]


def cases(name: str, rng: random.Random) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield named rows of float32 patterns. Formats with means get values whose sum float64 holds exactly."""
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
    """Return the midpoints of neighbouring values and the adjacent floats, after a 1 if a scale is shared."""
    _, kind, _ = RULES[name]
    base = [word(1)] if kind != "element" else []
    outputs = quantize(name, [[decode(word(Fraction(k, 64)), 32) for k in range(64)]])[0]
    sizes = sorted({size for _, size in outputs if isinstance(size, Fraction)})
    middles = [word((a + b) / 2) for a, b in pairwise(sizes)][:12]
    return base + [near for m in middles for near in (m - 1, m, m + 1, m | 1 << 31)] or [word(0.5)]


def document() -> dict[str, Any]:
    listed = []
    for name in RULES:
        rng = random.Random(name)  # Python guarantees the sequence of this generator, seeded by text
        for about, rows in cases(name, rng):
            inputs = [[decode(w, 32) for w in row] for row in rows]
            values = quantize(name, inputs)
            elements, shared = coded(name, inputs)
            listed.append(
                {
                    "format": name,
                    "about": about,
                    "rows": len(rows),
                    "cols": len(rows[0]),
                    "x": words(rows),
                    "values": words([[encode(v) for v in row] for row in values]),
                    "elements": elements.hex(),
                    **shared,
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
