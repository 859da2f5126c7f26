"""Sweeps: the product of axes written as ranges."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from assay.errors import UsageError
from assay.op import Op
from assay.workload import Workload

_RANGE = re.compile(r"(?P<first>\d{1,18})(\.\.(?P<last>\d{1,18})(:(?P<how>[x+])(?P<step>\d{1,18}))?)?")
_LIMIT = 10_000
_MANY = 64
"""Sizes above which a range needs a step: each is a workload, timed for seconds."""


def axis_values(text: str) -> list[int]:
    """Return the sizes in a text: `1024..65536:x2` doubles, `0..100:+10` adds, and commas join parts, as in
    `3,5,1024..4096:x2`. Without a step, `1..16` is every size; a range of more than `_MANY` sizes needs one."""
    values: list[int] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        sizes = _RANGE.fullmatch(part)
        if not sizes:
            raise _bad(text)
        first, last, step = int(sizes["first"]), int(sizes["last"] or sizes["first"]), int(sizes["step"] or 1)
        times = sizes["how"] == "x"
        if last < first or step < (2 if times else 1) or (times and first == 0):
            raise _bad(text)
        if not sizes["how"] and last - first >= _MANY:
            raise _without_step(first, last)
        value = first
        while value <= last:
            values.append(value)
            value = value * step if times else value + step
            if len(values) > _LIMIT:
                raise UsageError(f"{text}: more than {_LIMIT} sizes", fix="take larger steps")
    if not values:
        raise _bad(text)
    return list(dict.fromkeys(values))


def _bad(text: str) -> UsageError:
    return UsageError(f"'{text}' is not a list of sizes", fix="e.g. 1024..65536:x2, 0..100:+10, or 3,5,1024")


def _without_step(first: int, last: int) -> UsageError:
    number = last - first + 1
    added = f"{first}..{last}:+{-(-number // 16)}"
    doublings = (last // first).bit_length() if first else 0
    doubled = f"{first}..{last}:x2 ({doublings} sizes) or " if doublings > 2 else ""
    every = f"; for every size {first}..{last}:+1" if number <= _LIMIT else ""
    return UsageError(f"{first}..{last} without a step is {number} sizes", fix=f"write one: {doubled}{added}{every}")


def workloads(op: Op, dtypes: Sequence[str], axes: Mapping[str, Iterable[int]], seed: int = 0) -> list[Workload]:
    """Return a workload for every combination of sizes; other axes take their typical size. A combination outside the
    op's contract is an error."""
    if unknown := [name for name in axes if name not in op.axes]:
        raise UsageError(f"{op.name} has no axis '{unknown[0]}'", fix=f"its axes: {', '.join(op.axes)}")
    points = itertools.product(dtypes, *axes.values())
    return [
        Workload.of(op, "".join(f"{n}={v}," for n, v in zip(axes, sizes, strict=True)) + f"dtype={number},seed={seed}")
        for number, *sizes in points
    ]
