"""Formats numbers for readers: scaled by SI prefixes, rounded to what is meaningful, with their unit."""

import math
from dataclasses import dataclass

PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
UNSCALED = ("cycles", "")
"""Units of counts, which are not scaled: 512 cycles, never 0.512 kcycles."""
NOTHING = "–"


@dataclass(frozen=True)
class Quantity:
    """A number and its unit apart, so that a table can align both."""

    number: str
    unit: str

    def __str__(self) -> str:
        return f"{self.number}\u00a0{self.unit}" if self.unit else self.number


def scaled(value: float | None, unit: str, digits: int = 4) -> Quantity:
    """`scaled(1.234e-5, "s")` is 12.34 µs: always `digits` significant digits, so that columns look alike."""
    if value is None or not math.isfinite(value):
        return Quantity(NOTHING, "")
    if value == 0:
        return Quantity("0", unit)
    rounded = float(f"{value:.{digits - 1}e}")  # first, so that 999.96 becomes 1.000 k
    exponent = math.floor(math.log10(abs(rounded)) + 1e-9)
    step = 0 if unit in UNSCALED else min(max(3 * (exponent // 3), min(PREFIXES)), max(PREFIXES))
    decimals = max(0, digits - 1 - (exponent - step))
    return Quantity(f"{rounded / 10**step:.{decimals}f}", PREFIXES[step] + unit)


def si(value: float | None, unit: str, digits: int = 4) -> str:
    return str(scaled(value, unit, digits))


def between(value: float | None, interval: tuple[float, float] | list[float] | None, unit: str) -> str:
    """Return a median with its interval in the median's own unit: `12.34 µs (12.30 – 12.39)`."""
    middle = scaled(value, unit)
    if value is None or not interval or middle.number in (NOTHING, "0"):
        return str(middle)
    factor = float(f"{value:.3e}") / float(middle.number)
    decimals = len(middle.number.partition(".")[2])
    low, high = (f"{bound / factor:.{decimals}f}" for bound in interval)
    return f"{middle} ({low} – {high})"


def times(value: float | None) -> str:
    """Return a speedup: 1.80×, 12.3×, 0.042×."""
    return NOTHING if value is None or not math.isfinite(value) else f"{scaled(value, '', 3).number}×"


def share(value: float | None, decimals: int = 0) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{100 * value:.{decimals}f}\u00a0%"


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 kernel`, `28 080 workloads`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """Format seconds with four significant digits, in s, ms, µs or ns."""
    for scale, unit in ((1.0, "s "), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:#.4g} {unit}"
    return f"{seconds * 1e9:#.4g} ns"
