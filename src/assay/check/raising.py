"""The error of an op whose reference, magnitude or drawing function raises on a workload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.errors import AssayError, SourceError
from assay.provenance import shown
from assay.worker.failure import scarce
from assay.workload import Workload


@contextmanager
def named(workload: Workload, what: str) -> Iterator[None]:
    """Raise a SourceError that names the op, its line and the workload in place of what a function of the op raises."""
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        if scarce(error):
            raise
        raise _error(workload, error, what) from error


def _error(workload: Workload, error: Exception, what: str) -> SourceError:
    op = workload.op
    where, at = f"{shown(Path(op.source))}:{op.reference.__code__.co_firstlineno}", error.__traceback__
    while at:
        if at.tb_frame.f_code.co_filename == op.source:
            where = f"{shown(Path(op.source))}:{at.tb_lineno}"
        at = at.tb_next
    lines = str(error).strip().splitlines()
    return SourceError(
        f"op {op.name}: {what}: {type(error).__name__}: {lines[0] if lines else ''} (on {workload})",
        where=where,
        fix=_fix(workload),
    )


def _fix(workload: Workload) -> str:
    empty = [name for name, size in workload.axes if size == 0]
    if empty:
        return f"if empty tensors are not in the op's contract, declare {empty[0]} as Axis(min=1)"
    return "try it in Python on tensors of these sizes; Axis(max=…) or require= excludes sizes"
