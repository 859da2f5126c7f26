"""The space of a study: knobs with their possible values. Some knobs exist only for certain values of others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random
from typing import Any

from assay.errors import UsageError
from assay.models.subject.knobs import Knob

Space = Mapping[str, Knob]
Point = dict[str, str]
"""A value for each knob that exists given the values of the others."""
Key = tuple[tuple[str, str], ...]


def key(point: Mapping[str, str]) -> Key:
    """Return a hashable key that is equal for equal points."""
    return tuple(sorted(point.items()))


def ordered(space: Space) -> dict[str, Knob]:
    """Return the same space with every knob after those it depends on."""
    left, placed = dict(space), dict[str, Knob]()
    while left:
        ready = [name for name, knob in left.items() if all(other in placed for other in knob.where)]
        if not ready:
            fix = "each knob may depend on others of the same search, and not on itself"
            raise UsageError(f"the knobs {', '.join(left)} depend on others that are not searched", fix=fix)
        placed |= {name: left.pop(name) for name in ready}
    return placed


def points(space: Space) -> Iterator[Point]:
    """Yield every point. The space must be `ordered`."""
    knobs = list(space.items())

    def below(at: int, chosen: Point) -> Iterator[Point]:
        if at == len(knobs):
            yield dict(chosen)
            return
        name, knob = knobs[at]
        if not _exists(knob, chosen):
            yield from below(at + 1, chosen)
            return
        for value in knob.values:
            yield from below(at + 1, chosen | {name: value})

    return below(0, {})


def size(space: Space, most: int) -> int | None:
    """Return the number of points, or None if there are more than `most`."""
    if not any(knob.where for knob in space.values()):
        whole = math.prod(len(knob.values) for knob in space.values())
        return whole if whole <= most else None
    counted = sum(1 for _ in islice(points(space), most + 1))
    return counted if counted <= most else None


def suggested(trial: Any, space: Space) -> Point:
    """Return the point of an Optuna trial. A parameter is the index of the value in its list, so that samplers can use
    that neighbouring values are alike."""
    chosen: Point = {}
    for name, knob in space.items():
        if _exists(knob, chosen):
            chosen[name] = knob.values[trial.suggest_int(name, 0, len(knob.values) - 1)]
    return chosen


def drawn(space: Space, rng: Random) -> Point:
    """Return a random point, with each knob's values equally likely."""
    chosen: Point = {}
    for name, knob in space.items():
        if _exists(knob, chosen):
            chosen[name] = rng.choice(knob.values)
    return chosen


def beside(point: Mapping[str, str], space: Space, rng: Random, steps: int) -> Point:
    """Return a point at most `steps` steps from another; each step moves one knob to a neighbouring value."""
    moved = dict(point)
    for name in rng.choices(list(point), k=steps):
        values = space[name].values
        place = values.index(moved[name]) + rng.choice((-1, 1))
        moved[name] = values[min(max(place, 0), len(values) - 1)]
    chosen: Point = {}
    for name, knob in space.items():
        if _exists(knob, chosen):
            chosen[name] = moved.get(name, knob.default)
    return chosen


def places(point: Mapping[str, str], space: Space) -> dict[str, int]:
    """Return the Optuna parameters of this point: the index of each value."""
    return {name: space[name].values.index(value) for name, value in point.items()}


def of_places(parameters: Mapping[str, int], space: Space) -> Point:
    return {name: space[name].values[place] for name, place in parameters.items()}


def defaults(space: Space) -> Point:
    chosen: Point = {}
    for name, knob in space.items():
        if _exists(knob, chosen):
            chosen[name] = knob.default
    return chosen


def completed(some: Mapping[str, str], space: Space) -> Point:
    """Return a point with these values, the other knobs at their defaults or at what these values require."""
    wanted = dict(some)
    for name in reversed(list(space)):
        if name in wanted:
            for other, values in space[name].where.items():
                # Set even if its default fits, so that the knobs it depends on are set in turn.
                asked = wanted.get(other, space[other].default)
                wanted[other] = asked if asked in values else values[0]
    chosen: Point = {}
    for name, knob in space.items():
        if _exists(knob, chosen):
            chosen[name] = wanted.get(name, knob.default)
    return chosen


def plain(space: Space) -> dict[str, Any]:
    """Return the space as JSON data."""
    return {
        name: {"values": list(k.values), "default": k.default, "where": {n: list(v) for n, v in k.where.items()}}
        for name, k in space.items()
    }


def read(data: Mapping[str, Any]) -> Space:
    """Read a space from the output of `plain`."""
    return {
        name: Knob(tuple(k["values"]), k["default"], {n: tuple(v) for n, v in k["where"].items()})
        for name, k in data.items()
    }


def _exists(knob: Knob, chosen: Mapping[str, str]) -> bool:
    """Return whether the knob exists. One that depends on a knob that does not exist does not exist either."""
    return all(other in chosen for other in knob.where) and knob.exists(chosen)
