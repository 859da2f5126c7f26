"""Builds what was selected and yields a record for each kernel that would be launched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.artifact import Artifact
from assay.catalog.asked import asked
from assay.catalog.called import called
from assay.catalog.reader import op_of_cuda
from assay.catalog.select import Named, select
from assay.catalog.tunables import refuse_unknown, tuned
from assay.errors import AssayError, UsageError
from assay.inspect.bare import artifacts
from assay.inspect.build import launches
from assay.inspect.evidence import Block, Gates, InspectEvidence, Launch
from assay.inspect.gates import applies_to, broken, refuse_unknown_gates
from assay.inspect.remarks import remarks
from assay.inspect.summary import summary
from assay.inspect.table import Table, table
from assay.isa.cubin import functions
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.settings import settings_of
from assay.target import DEFAULT, Target
from assay.target import target as target_of
from assay.watching import watched
from assay.worker import Limits, Pool
from assay.workload import Workload

LANGUAGES = ("triton", "cuda", "cupy", "numba")
"""Languages whose kernels are compiled to GPU machine code."""


@dataclass(frozen=True)
class Options:
    """The options of `inspect`."""

    targets: tuple[str, ...] = (str(DEFAULT),)
    dtypes: tuple[str, ...] = ()
    """If empty, the first dtype that each op declares."""
    workload: str = ""
    """In the form in which records print it; if empty, the op's typical one. The kernel is specialised for this
    workload."""
    op: str | None = None
    """The op that a bare .cu file with launch comments computes."""
    compiler: str = ""
    """nvrtc or nvcc, for CUDA C++; if empty, the one that the kernel is launched with."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Tunables that are not at their defaults."""
    seconds: float = 120.0
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Inspection:
    """The machine code of one kernel: its record, and the texts that a page shows with it."""

    record: Record
    table: Table | None = None
    cubin: bytes = b""
    ptx: str = ""
    ir: str = ""
    ir_kind: str = ""

    @property
    def evidence(self) -> InspectEvidence:
        return InspectEvidence.of(self.record)


def inspect(
    *what: str | Path | Callable[..., Any], options: Options | None = None, **settings: Any
) -> Iterator[Record]:
    """Compile kernels and yield a record, with every instruction, for each launch, dtype and target."""
    for name in ("dtypes", "targets"):
        if isinstance(settings.get(name), str):
            settings[name] = tuple(settings[name].split(","))
    chosen = options or settings_of(Options, settings)
    yield from watched("inspect", (inspection.record for inspection in inspections(what, chosen)))


def inspections(
    what: Iterable[Named], options: Options, tick: Callable[[str], None] = lambda text: None
) -> Iterator[Inspection]:
    targets = [target_of(name) for name in options.targets]
    named = list(what)
    if not named:
        raise UsageError("inspect what?", fix="name a kernel or a file: assay inspect gelu/triton")
    files = [Path(item) for item in named if isinstance(item, str | Path) and bare(Path(item), options)]
    for file in files:
        for target in targets:
            tick(f"{file}  {target}")
            yield from _of_file(file, target, options)
    with Pool(Limits(options.seconds)) as pool:
        chosen = select([i for i in named if not isinstance(i, str | Path) or Path(i) not in files], options.op)
        refuse_unknown(chosen, options.parameters)
        for kernel, op in chosen:
            for workload in _workloads(kernel, op, options):
                for target in targets:
                    tick(f"{kernel.name}  {workload}  {target}")
                    tuned_options = replace(options, parameters=tuned(kernel, op, options.parameters))
                    yield from _of_kernel(kernel, workload, target, pool, tuned_options)


def bare(path: Path, options: Options) -> bool:
    """Return whether to inspect the file by itself: it is neither Python nor CUDA C++ that computes an op, as the
    command or a comment in it says."""
    if path.suffix == ".cu":
        return path.is_file() and not options.op and op_of_cuda(path) is None
    return path.suffix != ".py" and (path.is_file() or path.suffix in (".ptx", ".cubin", ".fatbin", ".o"))


def _of_file(file: Path, target: Target, options: Options) -> Iterator[Inspection]:
    common: dict[str, Any] = {
        "verb": "inspect",
        "workload": "",
        "run": options.run,
        "replay": f"assay inspect {file} --target {target}",
        "provenance": provenance.provenance(0),
    }
    try:
        for artifact in artifacts(file, target):
            about = common | {"kernel": f"{file.name}:{artifact.name}", "source": {"file": str(file)}}
            yield of_artifact(artifact, about)
    except UsageError:
        raise
    except AssayError as problem:
        evidence = InspectEvidence(str(target)).to_dict()
        yield Inspection(Record(kernel=file.name, status=Status.FAIL, reason=str(problem), evidence=evidence, **common))


def gates(kernel: Kernel, workload: Workload, target: Target, pool: Pool) -> list[str]:
    """Return the expectations that a kernel's code does not meet, on this workload and target."""
    if not kernel.expects or kernel.address.backend not in LANGUAGES:
        return []
    inspected = _of_kernel(kernel, workload, target, pool, Options())
    return [f"{one.evidence.target}: {one.record.reason}" for one in inspected if one.record.failed]


def _workloads(kernel: Kernel, op: Op, options: Options) -> list[Workload]:
    if options.workload:
        return [asked(options.workload, op)]
    wanted = options.dtypes or (kernel.dtypes or op.dtypes)[:1]
    return [Workload.of(op, f"dtype={name}") for name in wanted if name in op.dtypes]


def _of_kernel(
    kernel: Kernel, workload: Workload, target: Target, pool: Pool, options: Options
) -> Iterator[Inspection]:
    op = workload.op
    common: dict[str, Any] = {
        "verb": "inspect",
        "kernel": kernel.name,
        "workload": str(workload),
        "run": options.run,
        "replay": f"assay inspect {called(kernel, op, options.parameters)} --workload {workload} --target {target}"
        + (f" --compiler {options.compiler}" if options.compiler else ""),
        "source": provenance.source_of(kernel.home, kernel.line),
        "provenance": provenance.provenance(0),
    }
    refuse_unknown_gates(kernel)
    if kernel.address.backend not in LANGUAGES:
        why = f"{kernel.address.backend} kernels have no GPU machine code to show"
        yield Inspection(Record(status=Status.SKIPPED, reason=why, **common))
        return
    try:
        started = launches(kernel, workload, target, pool, options.parameters, options.compiler)
    except UsageError:
        raise
    except AssayError as problem:
        evidence = InspectEvidence(str(target)).to_dict()
        yield Inspection(Record(status=Status.FAIL, reason=str(problem), evidence=evidence, **common))
        return
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for launch in started:
        key = (launch.artifact.text_hash, launch.block)
        if key in seen:
            continue
        seen.add(key)
        about = Launch(list(launch.grid), list(launch.block), launch.shared)
        one = of_artifact(launch.artifact, common, math.prod(launch.block), launch.shared, about, options.parameters)
        typical = workload == Workload.of(op, f"dtype={workload.dtype}") and not options.parameters
        yield _gated(kernel, one) if typical else one


def _gated(kernel: Kernel, one: Inspection) -> Inspection:
    """Check the kernel's gates. They apply to the op's typical workload and default tunables, since other sizes and
    tunables may give other code."""
    if not kernel.expects or one.table is None or not applies_to(kernel.expects, one.evidence.name):
        return one
    evidence = one.evidence
    assert evidence.summary
    unmet = broken(kernel.expects, one.table.rows, evidence.summary)
    evidence = replace(evidence, gates=Gates(dict(kernel.expects), unmet))
    record = replace(one.record, evidence=evidence.to_dict())
    if unmet:
        record = replace(record, status=Status.FAIL, reason=f"gate: {'; '.join(unmet)}")
    return replace(one, record=record)


def of_artifact(
    artifact: Artifact,
    common: dict[str, Any],
    block: int | None = None,
    dynamic: int = 0,
    launch: Launch | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Inspection:
    """Return the inspection of one built kernel."""
    ptx = artifact.ptx.decode(errors="replace")
    kind, ir = next(((k, artifact.ir[k]) for k in ("ttgir", "ttir") if k in artifact.ir), ("", ""))
    with ThreadPoolExecutor(1) as beside:
        ptxas_remarks = beside.submit(remarks, artifact)
        instruction_table = table(artifact.cubin, artifact.symbol, ptx, ir)
    function = next(f for f in functions(artifact.cubin) if f.symbol == artifact.symbol)
    derived = summary(instruction_table, function, artifact.target, block, dynamic, ptxas_remarks.result())
    missing = [f"the launched code: {artifact.doubt}"] if artifact.doubt else []
    if not instruction_table.live:
        missing.append(f"live_registers: {instruction_table.uncounted}")
    if derived.remarks is None:
        missing.append("remarks: no ptxas here makes this very code of its PTX")
    evidence = InspectEvidence(
        str(artifact.target),
        artifact.symbol,
        artifact.name,
        artifact.compiler,
        artifact.text_hash,
        launch,
        dict(parameters) if parameters else None,
        derived,
        [Block(b.number, b.start, b.end, b.follows, b.loop_depth) for b in instruction_table.blocks],
        unavailable=missing,
    )
    reason = f"{derived.instructions} instructions, {derived.registers} registers"
    record = Record(
        status=Status.COMPILED,
        reason=reason,
        evidence=evidence.to_dict(),
        artifacts=[artifact.summary()],
        instructions=[r.to_dict() for r in instruction_table.rows],
        **common,
    )
    return Inspection(record, instruction_table, artifact.cubin, ptx, ir, kind)
