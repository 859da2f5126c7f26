"""Sweeps: the product of axes written as ranges."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from assay.errors import UsageError
from assay.op import Op
from assay.workload import Workload

_RANGE = re.compile(r"(?P<first>\d{1,18})(\.\.(?P<last>\d{1,18})(:(?P<how>[x+])(?P<step>\d{1,18}))?)?")
_LIMIT = 10_000


def axis_values(text: str) -> list[int]:
    """Return the sizes in a text: `1024..65536:x2` doubles, `0..100:+10` adds (1 if no step is given), and commas join
    parts, as in `3,5,1024..4096:x2`."""
    values: list[int] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        sizes = _RANGE.fullmatch(part)
        if not sizes:
            raise _bad(text)
        first, last, step = int(sizes["first"]), int(sizes["last"] or sizes["first"]), int(sizes["step"] or 1)
        times = sizes["how"] == "x"
        if last < first or step < (2 if times else 1) or (times and first == 0):
            raise _bad(text)
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
