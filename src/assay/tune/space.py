"""The space of a kernel's tunables: all combinations of the declared values that its constraint allows."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from assay.catalog.constraint import CORES, ITEMSIZE, Constraint
from assay.catalog.signature import defaults
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.workload import Workload

Configuration = dict[str, Any]
"""A value for each tunable."""
Key = tuple[tuple[str, str], ...]
_MOST = 200_000
"""The most combinations that are enumerated."""


def key(configuration: Mapping[str, Any]) -> Key:
    """Return the configuration as a dictionary key. True and 1 are different values."""
    return tuple(sorted((name, repr(value)) for name, value in configuration.items()))


def label(configuration: Mapping[str, Any]) -> str:
    """Return the configuration as text: `BLOCK=512, num_warps=4`."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items())


@dataclass(frozen=True)
class Space:
    values: Mapping[str, Sequence[Any]]
    """The values of each tunable, in the order of the declaration."""
    constraint: Constraint = field(default_factory=Constraint)
    known: Mapping[str, Any] = field(default_factory=dict)
    """Names that the constraint may use besides the tunables: sizes, attributes, the number of cores."""
    default: Configuration = field(default_factory=dict)
    """The values in the kernel's signature; empty unless every tunable has a literal there."""

    @cached_property
    def combinations(self) -> int:
        """The number of combinations without the constraint."""
        return math.prod(len(values) for values in self.values.values())

    @cached_property
    def configurations(self) -> list[Configuration]:
        """All valid configurations, in the order of the declaration. The default is included even if its values are not
        listed."""
        if self.combinations > _MOST:
            raise UsageError(
                f"the space has {self.combinations} combinations, more than {_MOST}",
                fix="fix some tunables with --param NAME=VALUE, or list fewer values in tune=",
            )
        every = [dict(zip(self.values, point, strict=True)) for point in itertools.product(*self.values.values())]
        valid = [c for c in every if self.fits(c)]
        if self.default and self.default not in valid and self.fits(self.default):
            valid.append(self.default)
        return valid

    def fits(self, configuration: Mapping[str, Any]) -> bool:
        return self.constraint.holds({**self.known, **configuration})

    def neighbours(self, configuration: Mapping[str, Any], steps: int = 1) -> list[Configuration]:
        """Return the valid configurations that differ in one tunable only, by up to `steps` places in its values."""
        near = []
        for name, values in self.values.items():
            if configuration[name] not in values:
                near += [{**configuration, name: value} for value in values]
                continue
            at = list(values).index(configuration[name])
            near += [
                {**configuration, name: value}
                for index, value in enumerate(values)
                if index != at and (abs(index - at) <= steps or not ordered(values))
            ]
        return [c for c in near if self.fits(c)]

    def far(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
        """Return the distance of two configurations: places between their values, summed over the tunables."""
        return sum(apart(values, one[name], other[name]) for name, values in self.values.items())


def ordered(values: Sequence[Any]) -> bool:
    """Return whether adjacent values in this list are similar: numbers are, strings and switches are not."""
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def apart(values: Sequence[Any], one: Any, other: Any) -> int:
    if one == other:
        return 0
    listed = list(values)
    if not ordered(values) or one not in listed or other not in listed:
        return 1
    return abs(listed.index(one) - listed.index(other))


def space_of(kernel: Kernel, workload: Workload, parameters: Mapping[str, Any] | None = None) -> Space:
    """Return the space of a kernel on a workload. `parameters` are tunables fixed by the user."""
    given = dict(parameters or {})
    values = {
        name: (given[name],) if name in given else tuple(choices)
        for name, choices in kernel.tune.items()
        if name not in kernel.fixed
    }
    if not values:
        where = f"{kernel.file}:{kernel.line}" if kernel.file else kernel.name
        listed = f'list what may be tried, e.g. @kernel("{kernel.address.op}", tune={{"threads": [256, 512]}})'
        if kernel.file and kernel.file.suffix == ".cu":
            fix = f'launch it from a Python file with Source("{kernel.file.name}") (docs/languages.md), and {listed}'
        else:
            fix = f"{where}: {listed}"
        raise UsageError(f"{kernel} declares no tunables", fix=fix)
    known = {**workload.named, CORES: _cores(), ITEMSIZE: workload.dtype.itemsize, **kernel.fixed}
    signature = {**defaults(kernel), **given}
    default = {name: signature[name] for name in values if name in signature}
    return Space(values, Constraint(kernel.fits), known, default if set(default) == set(values) else {})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
