"""Says how a kernel gets more workloads in an interpreter, which runs its programs one after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.catalog import library
from assay.op import Op
from assay.workload import Workload

_ENOUGH = 3
"""The least number of lengths of an axis that show whether the number of programs follows it."""


def advice(op: Op, launched: Sequence[tuple[Workload, int]]) -> str:
    """Return what helps a kernel of this op that was too slow to be judged. `launched`: its workloads, each with the
    most programs of a launch."""
    axes = [name for name in _one_program_for_each(op, launched) if not op.axes[name].problems]
    if not axes or library.ROOT in Path(op.source).parents:
        return "\n  → try more of them with --thorough, or run the check on a machine with a GPU"
    names = " and ".join(f"`{name}`" for name in axes)
    return (
        f"\n  → the kernel starts a program for each of {names}: declare Axis(…, problems=True), "
        "and interpreters get few of them"
    )


def _one_program_for_each(op: Op, launched: Sequence[tuple[Workload, int]]) -> list[str]:
    """Return the axes whose length divides the number of programs in every workload."""
    found = []
    for position, name in enumerate(op.axes):
        pairs = {(workload.axes[position][1], programs) for workload, programs in launched if programs}
        longer = [(length, programs) for length, programs in pairs if length > 1]
        if len({length for length, _ in longer}) >= _ENOUGH and all(p % length == 0 for length, p in longer):
            found.append(name)
    return found
