"""The codes of number formats from exact values, that is, the bytes in which a tensor is stored, for format_vectors.py.

Like format_rules.py it uses no code of Assay. A stream of codes is one large integer here, written from its low end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

from format_rules import (
    INF,
    NAN,
    RULES,
    Value,
    below_zero,
    block_exponent,
    encode,
    float_sizes,
    floor_log2,
    grouped,
    integer_scale,
    largest_power,
    mean,
    power,
    residual_means,
)

Group = Sequence[tuple[bool, Fraction]]
Coder = Callable[[Group, Sequence[Value]], tuple[list[int], list[str]]]
"""Maps the inputs of a finite group and their quantised values to codes, and to shared values in hexadecimal."""
NAN_WORD = "7fc00000"


def coded(name: str, rows: Sequence[Sequence[Value]]) -> tuple[bytes, dict[str, str]]:
    """Return the packed codes of a matrix, and by name the shared values, in the order of the groups."""
    width, names, not_finite, coder = coder_of(name)
    stream = count = 0
    shared: list[list[str]] = []
    for group in grouped(name, rows):
        values = RULES[name][0](group)
        if names and any(isinstance(size, str) for _, size in group):
            codes, words = [0] * len(group), not_finite
        else:
            codes, words = coder(group, values)  # type: ignore[arg-type]
        for code in codes:
            assert 0 <= code < 2**width
            stream |= code << count * width
            count += 1
        shared.append(words)
    columns = zip(names, zip(*shared, strict=True), strict=True) if names else ()
    return stream.to_bytes(-(-count * width // 8), "little"), {part: " ".join(words) for part, words in columns}


def coder_of(name: str) -> tuple[int, list[str], list[str], Coder]:
    """Return the width of a code, the names of shared values, their values for a group that is not finite, and the
    coder."""
    kind, *words = name.split(":")
    if kind == "minifloat":
        width, table = float_codes(tuple(words))
        return width, [], [], lambda group, values: ([table[value] for value in values], [])
    if kind == "block-minifloat":
        return float_codes(tuple(words[:-1]))[0], ["exponents"], ["ff"], float_blocks(tuple(words[:-1]))
    if words[:1] == ["scaled"]:
        return 1, ["means"], [NAN_WORD], lambda group, values: (signs(group), [word(mean([s for _, s in group]))])
    if words[:1] == ["residual"]:
        return 2, ["first", "second"], [NAN_WORD] * 2, two_signs
    if kind == "binary":
        return 1, [], [], lambda group, values: (signs(group), [])
    width = int(words[0])
    if kind == "fixed":
        return width, [], [], integers(width, lambda group: (power(-int(words[1])), []))
    if kind == "log":
        top = int(words[1].removeprefix("e=")) if len(words) > 1 else 0
        return width, [], [], powers(width, lambda group: (top, []))
    if kind == "int":
        return width, ["scales"], [NAN_WORD[: digits_of_scale(width)]], scaled_integers(width)
    if kind == "bfp":
        return width, ["exponents"], ["ff"], blocks(width)
    assert kind == "block-log"
    return width, ["exponents"], ["ff"], powers(width, lambda group: exponent(largest_power(width, group)))


def word(value: Fraction) -> str:
    """Return the bits of a float32 in hexadecimal."""
    return f"{encode((False, value)):08x}"


def exponent(value: int) -> tuple[int, list[str]]:
    return value, [f"{value + 127:02x}"]


def signs(group: Group) -> list[int]:
    return [int(below_zero(value)) for value in group]


def integers(width: int, step_of: Callable[[Group], tuple[Fraction, list[str]]]) -> Coder:
    """Return a coder for multiples of a step, in two's complement."""

    def coder(group: Group, values: Sequence[Value]) -> tuple[list[int], list[str]]:
        step, words = step_of(group)
        multiples = [(-1 if sign else 1) * Fraction(size) / step for sign, size in values]
        assert all(m.denominator == 1 for m in multiples)
        return [int(m) % 2**width for m in multiples], words

    return coder


def digits_of_scale(width: int) -> int:
    """Return the hexadecimal digits of a scale: a bfloat16 is the upper half of a float32."""
    return 4 if width <= 8 else 8


def scaled_integers(width: int) -> Coder:
    def step_of(group: Group) -> tuple[Fraction, list[str]]:
        scale = integer_scale(width, group)
        return scale, [word(scale)[: digits_of_scale(width)]]

    return integers(width, step_of)


def blocks(width: int) -> Coder:
    def step_of(group: Group) -> tuple[Fraction, list[str]]:
        value, words = exponent(block_exponent(group, 0))
        return power(value - width + 2), words

    return integers(width, step_of)


def powers(width: int, top_of: Callable[[Group], tuple[int, list[str]]]) -> Coder:
    """Return a coder for powers of two: the sign, and 0 for zero, else the number of the power, the largest last."""

    def coder(group: Group, values: Sequence[Value]) -> tuple[list[int], list[str]]:
        top, words = top_of(group)
        most = 2 ** (width - 1) - 1
        numbers = [most - (top - floor_log2(Fraction(size))) if size else 0 for _, size in values]
        return [n + sign * 2 ** (width - 1) for n, (sign, _) in zip(numbers, values, strict=True)], words

    return coder


@cache
def float_codes(words: tuple[str, ...]) -> tuple[int, dict[Value, int]]:
    """Return the width of the minifloat named by `e4m3`, `nan` and so on, and the code of each value, with the sign in
    the highest bit."""
    exponent, fraction = map(int, words[0].removeprefix("e").split("m"))
    specials = words[-1] if words[-1] in ("nan", "ieee") else "finite"
    denormals = "no-denormals" not in words
    sizes = float_sizes(exponent, fraction, denormals, specials)
    codes: dict[Value, int] = {(False, size): place for place, size in enumerate(sizes)}
    if not denormals:  # the codes of subnormal numbers, from 1 on, are skipped
        codes = {value: place + 2**fraction - 1 if place else 0 for value, place in codes.items()}
    last = 2**exponent - 1 << fraction
    if specials == "ieee":
        codes[False, INF] = last
    table = codes | {(True, size): code + 2 ** (exponent + fraction) for (_, size), code in codes.items()}
    table[False, NAN] = last + (2 ** (fraction - 1) if specials == "ieee" else 2**fraction - 1)
    return 1 + exponent + fraction, table


def float_blocks(words: tuple[str, ...]) -> Coder:
    table = float_codes(words)[1]
    top = floor_log2(max(Fraction(size) for _, size in table if not isinstance(size, str)))

    def coder(group: Group, values: Sequence[Value]) -> tuple[list[int], list[str]]:
        value, shared = exponent(block_exponent(group, top))
        return [table[sign, Fraction(size) / power(value)] for sign, size in values], shared

    return coder


def two_signs(group: Group, values: Sequence[Value]) -> tuple[list[int], list[str]]:
    first, rest, second = residual_means(group)
    return [sign + 2 * (r < 0) for sign, r in zip(signs(group), rest, strict=True)], [word(first), word(second)]
