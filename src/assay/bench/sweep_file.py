"""A sweep in a TOML file: its settings, each of the right type."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from assay.bench.sweep import axis_values
from assay.errors import UsageError

FEWEST_ROUNDS, LEAST_BUDGET = 5, 0.1


@dataclass(frozen=True)
class SweepFile:
    """The settings of a sweep. What the file leaves out is empty or None."""

    kernels: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    axes: Mapping[str, list[int]] = field(default_factory=dict)
    rounds: int | None = None
    budget: float | None = None


def from_file(path: Path) -> SweepFile:
    """Return the sweep in a file. Raise UsageError, with an example, for what is no setting of a sweep."""
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", fix="see docs/bench.md for an example") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}", fix="see docs/bench.md for an example") from None
    known = [f.name for f in fields(SweepFile)]
    if unknown := sorted(set(table) - set(known)):
        raise UsageError(f"{path}: '{unknown[0]}' is no setting of a sweep", fix=f"known: {', '.join(sorted(known))}")
    try:
        return SweepFile(**{name: _READERS[name](name, value) for name, value in table.items()})
    except UsageError as problem:
        raise UsageError(f"{path}: {problem.what}", fix=problem.fix) from None


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Return names from a text with commas, or a list."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise UsageError(f"{name} = {value!r} is no list of names", fix=f"e.g. {name} = {_EXAMPLES[name]}")
    return tuple(filter(None, (one.strip() for one in listed)))


def _axes(name: str, value: Any) -> dict[str, list[int]]:
    if not isinstance(value, dict):
        raise UsageError(
            f"{name} = {value!r} is no table of axes", fix='write [axes], and below it e.g. n = "1..64:x2"'
        )
    return {axis: _sizes(axis, sizes) for axis, sizes in value.items()}


def _sizes(axis: str, value: Any) -> list[int]:
    """Return sizes from a range as text, a number, or a list of numbers."""
    if isinstance(value, str):
        return axis_values(value)
    sizes = value if isinstance(value, list) else [value]
    if not sizes or not all(type(one) is int for one in sizes):
        raise UsageError(f"axis {axis} = {value!r} is no list of sizes", fix=f'e.g. {axis} = "1024..65536:x2"')
    return sizes


def _rounds(name: str, value: Any) -> int:
    if type(value) is not int or value < FEWEST_ROUNDS:
        raise UsageError(f"{name} = {value!r} is no number of rounds", fix=f"a whole number from {FEWEST_ROUNDS} on")
    return value


def _budget(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not LEAST_BUDGET <= value < float("inf"):
        raise UsageError(f"{name} = {value!r} is no time", fix=f"seconds, {LEAST_BUDGET} or more")
    return float(value)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "kernels": _names,
    "dtype": _names,
    "against": _names,
    "axes": _axes,
    "rounds": _rounds,
    "budget": _budget,
}
_EXAMPLES = {"kernels": '["layernorm", "gelu/triton"]', "dtype": '"bf16,fp32"', "against": '"torch,inductor"'}
