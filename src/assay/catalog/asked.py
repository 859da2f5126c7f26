"""Reads a workload that a user wrote, and refuses an impossible one before anything runs."""

import math
import re
from collections.abc import Callable

import psutil

from assay.errors import UsageError
from assay.op import Op
from assay.workload import Workload

_COPIES = 3
"""Each tensor exists three times: as it is drawn, in the memory shared with the worker, and inside the worker."""


def asked(text: str, op: Op, in_memory: Callable[[Workload], bool] = lambda workload: True) -> Workload:
    """Return the workload printed as `text`. Parts that it does not name take their defaults. `in_memory` tells whether
    its tensors will exist."""
    given: set[str] = set()
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (t.strip() for t in part.partition("="))
        if name in given:
            raise UsageError(f"the workload '{text}' says {name} twice", fix=f"leave one {name}=… out")
        given.add(name)
        whole = name in op.axes or name in ("seed", "offset", "inplace")
        if equals and whole and not re.fullmatch(r"[+-]?\d+", value):
            raise UsageError(
                f"{name}={value} in workload '{text}' is no whole number", fix=f"write it in digits: {name}=1024"
            )
        if whole and value.startswith("-"):
            raise UsageError(f"{name}={value} in workload '{text}' is negative", fix=f"choose {name}=0 or more")
    workload = Workload.of(op, text)
    if in_memory(workload):
        _refuse_too_large(workload)
    return workload


def memory_needed(workload: Workload) -> int:
    """Return the bytes of this machine's memory that a trial of the workload takes."""
    tensors = [*workload.present.values(), *workload.op.outputs.values()]
    return _COPIES * sum(math.prod(workload.shape(t)) * workload.dtype_of(t).itemsize for t in tensors)


def _refuse_too_large(workload: Workload) -> None:
    op = workload.op
    needed = memory_needed(workload)
    there = psutil.virtual_memory().total
    if needed > there:
        raise UsageError(
            f"{op.name} on {workload} needs about {needed / 2**30:.3g} GiB, this machine has {there / 2**30:.3g}",
            fix="choose smaller sizes",
        )
