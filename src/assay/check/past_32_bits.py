"""Finds offsets that overflow 32 bits in a Triton kernel, on any machine and without memory for 2³¹ elements.

A few of the programs that a launch on so large a tensor starts are interpreted, and only their addresses are looked at.
An access 2³² elements away from a tensor is such an overflow, whatever the values are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import Availability
from assay.backends import here as available
from assay.check.evidence import CheckEvidence, Past32Bits
from assay.dtype import DType
from assay.inspect.gates import OFFSETS
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import Addresses, Examined
from assay.worker.request import Call
from assay.workload import Workload

Join = Callable[[Record, Worker | None], tuple[Record, Worker | None]]
"""Looks at a kernel, adds what was seen to its record, and returns the worker if it is still healthy."""
MODE = "triton-interpret"
INDEXED = 1 << 31
"""The number of indices that a signed integer of 32 bits holds."""
_ELEMENTS = INDEXED + INDEXED // 4 + 3
"""Elements of the largest tensor: a fifth of them lie beyond 2³¹, and none beyond 2³²."""
_PROGRAMS, _OPERATIONS = 24, 4_000
"""The most programs of a launch that are interpreted, and the most operations of each."""
_AXES = 2
"""The most axes that are made long, each in turn."""
_ADVICE = "compute the offset in 64 bits, as in tl.program_id(0).to(tl.int64)"
_MOST = 1 << 40
"""Bytes of addresses that all tensors may take."""


def in_memory(kernel: Kernel, workload: Workload) -> bool:
    """False if a check of this workload alone looks at nothing but addresses: in Triton's interpreter, if 32 bits
    cannot index the largest tensor."""
    return available(kernel).mode != MODE or _largest(workload) <= INDEXED


def beside(
    kernel: Kernel,
    op: Op,
    dtype: DType,
    workload: Workload | None,
    here: Availability,
    parameters: dict[str, Any],
    pool: Pool,
    thorough: bool,
) -> Join:
    """Return a function that looks at a kernel which passed, in the worker that interpreted it. If it runs on a GPU, a
    worker of its own looks meanwhile."""
    if kernel.address.backend != "triton" or kernel.file is None or kernel.peer or workload:
        return lambda record, worker: (record, worker)

    def looked(worker: Worker | None) -> tuple[Past32Bits, Worker | None]:
        return look(kernel, chosen(op, dtype), parameters, pool, worker)

    meanwhile: Future[tuple[Past32Bits, Worker | None]] | None = None
    if here.mode != MODE:
        thread = ThreadPoolExecutor(1)
        meanwhile = thread.submit(looked, None)
        thread.shutdown(wait=False)

    def join(record: Record, worker: Worker | None) -> tuple[Record, Worker | None]:
        if record.status is not Status.PASS:
            if meanwhile is not None:
                meanwhile.add_done_callback(_closed)
            return record, worker
        if meanwhile is None:
            seen, worker = looked(worker)
        else:
            seen, _ = meanwhile.result()
            _closed(meanwhile)
        return joined(record, seen, thorough or OFFSETS in kernel.expects), worker

    return join


def _closed(looked: Future[tuple[Past32Bits, Worker | None]]) -> None:
    if not looked.exception() and (worker := looked.result()[1]):
        worker.close()


def chosen(op: Op, dtype: DType) -> Iterator[Workload]:
    """Yield workloads with one long axis, at which the largest tensor has more than 2³¹ elements, and the others
    typical. Results along the first one do not depend on each other, so a program seldom walks along it."""
    axes = sorted(op.axes, key=lambda name: name != op.independent)
    usual = Workload.of(op, f"dtype={dtype}")
    for name in axes[:_AXES]:
        one, two = (_with(usual, name, usual.named[name] * n) for n in (1, 2))
        if not (each := _largest(two) - _largest(one)):
            continue
        size = usual.named[name] * (_ELEMENTS // each) + 1
        longer = _with(usual, name, size)
        if _largest(longer) > INDEXED and longer.allowed:
            yield longer


def look(
    kernel: Kernel, workloads: Iterable[Workload], parameters: dict[str, Any], pool: Pool, worker: Worker | None
) -> tuple[Past32Bits, Worker | None]:
    """Examine the launches on each workload until an offset overflows. Return the worker too if it is still healthy."""
    try:
        worker = worker or pool.worker(kernel.address.backend, MODE)
        return _look(kernel, workloads, parameters, worker), worker
    except WorkerLost as lost:
        return Past32Bits([], 0, trouble=lost.detail), None


def _look(kernel: Kernel, workloads: Iterable[Workload], parameters: dict[str, Any], worker: Worker) -> Past32Bits:
    programs, trouble = 0, ""
    seen: list[str] = []
    for workload in workloads:
        call = Call.of(kernel, workload, MODE, parameters)
        if sum(spec.span for spec in call.tensors) > _MOST:
            continue
        try:
            found = worker.ask(Addresses(call, _PROGRAMS, _OPERATIONS))
        except Refused as refused:
            return Past32Bits(seen, programs, trouble=refused.failure.message.partition("\n")[0])
        seen.append(str(workload))
        programs += found.programs
        trouble = trouble or found.trouble
        if found.parameter:
            where = f"{provenance.shown(Path(found.file))}:{found.line}" if found.file else ""
            return Past32Bits(seen, programs, _words(found), found.stores, where)
    return Past32Bits(seen, programs, trouble=trouble)


def _words(found: Examined) -> str:
    does = "stores to" if found.stores else "loads"
    program = found.program[0] if len(found.program) == 1 else found.program
    return f"program {program} {does} `{found.parameter}`[{found.index}] at an offset that overflows 32 bits"


def joined(record: Record, seen: Past32Bits, refused: bool) -> Record:
    """Add what was seen to a record that passed. An overflow is a failure if it is `refused`: by a thorough check, as
    on a GPU, where no other check tries so many elements, or by the kernel itself. Otherwise the record tells of it."""
    evidence = replace(CheckEvidence.of(record), past_32_bits=seen)
    if not seen.problem:
        return replace(record, evidence=evidence.to_dict())
    where = f" ({seen.where})" if seen.where else ""
    if not refused:
        told = f"{record.reason}; past 2³¹ elements an offset overflows 32 bits{where}"
        return replace(record, reason=told, evidence=evidence.to_dict())
    detector = "guard" if seen.stores else "overread"
    evidence = replace(evidence, detector=detector, found_at=seen.workloads[-1])
    words = f"{detector}: on {seen.workloads[-1]}, {seen.problem}{where}; {_ADVICE}"
    return replace(record, status=Status.FAIL, reason=words, evidence=evidence.to_dict())


def _with(workload: Workload, axis: str, size: int) -> Workload:
    return replace(workload, axes=tuple((n, size if n == axis else v) for n, v in workload.axes))


def _largest(workload: Workload) -> int:
    tensors = [*workload.op.inputs.values(), *workload.op.outputs.values()]
    return max(math.prod(workload.shape(t)) for t in tensors)
