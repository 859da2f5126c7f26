"""Regimes of an axis: classes of sizes that kernels treat differently, each with representative sizes."""

from __future__ import annotations

from collections.abc import Iterable

from assay.op import Axis

_TWOS = tuple(2**k for k in range(2, 15))
_THREES = tuple(3 * 2**k for k in range(2, 12))
_FIVES = tuple(5 * 2**k for k in range(2, 11))

REGIMES: dict[str, tuple[int, ...]] = {
    "0": (0,),
    "1": (1,),
    "few": (2, 3, 4, 5, 6),
    "odd": (9, 15, 21, 45, 77, 105, 225, 345, 555, 1035, 2145, 4095),
    "prime": (7, 13, 31, 61, 97, 127, 251, 509, 769, 1021, 2039, 4093),
    "2ᵏ−1": tuple(n - 1 for n in _TWOS),
    "2ᵏ": _TWOS,
    "2ᵏ+1": tuple(n + 1 for n in _TWOS),
    "3·2ᵏ": tuple(sorted({*_THREES, *(n + d for n in _THREES for d in (-1, 1))})),
    "5·2ᵏ": tuple(sorted({*_FIVES, *(n + d for n in _FIVES for d in (-1, 1))})),
    "model": (384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 4096, 5120, 8192),
    "long": (16385, 20011, 32769, 65537, 70001, 131073),
}
"""Sizes of each regime, ascending. `long` exceeds what fits in a block, or in a grid of 65535."""


def of(axis: Axis, largest: int) -> dict[str, tuple[int, ...]]:
    """Return the regimes of an axis within its contract, with their sizes up to `largest`."""
    regimes = {}
    for name, sizes in REGIMES.items():
        if fits := tuple(n for n in sizes if axis.min <= n <= min(axis.max, largest)):
            regimes[name] = fits
    if axis.max <= 16:  # every size of a short axis, such as a filter's width, is tried
        return {str(n): (n,) for n in range(axis.min, axis.max + 1)}
    return regimes


def around(constants: Iterable[int], axis: Axis) -> list[int]:
    """Return sizes at which a kernel with these constants may branch: c − 1, c, c + 1 and multiples. The first three
    are one block and a bit, one block, and a loop that goes around more than once after the first time."""
    wanted: list[int] = []
    for c in constants:
        wanted += [c + 1, c, 3 * c + 1, c - 1, 2 * c, 2 * c + 1, 3 * c]
    return [n for n in dict.fromkeys(wanted) if axis.min <= n <= axis.max]
