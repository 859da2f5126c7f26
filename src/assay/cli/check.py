"""`assay check`: is it right?"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import keeping, screen, selection
from assay.cli.guides import located
from assay.cli.options import (
    All,
    AsJson,
    Backends,
    ChosenCompiler,
    Count,
    Device,
    DTypes,
    Include,
    Jobs,
    JUnit,
    Limit,
    OneWorkload,
    OpName,
    Out,
    Param,
    Seed,
    Strict,
    TargetName,
    Thorough,
    Timeout,
    What,
    parameters,
    split,
)

if TYPE_CHECKING:
    from assay.check.job import Job
    from assay.record import Record


def check(
    what: What = None,
    everything: All = False,
    op: OpName = None,
    dtype: DTypes = "",
    workload: OneWorkload = "",
    workloads: Count = None,
    thorough: Thorough = False,
    limit: Limit = None,
    backend: Backends = "",
    target: TargetName = "",
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    seed: Seed = 0,
    device: Device = "",
    compiler: ChosenCompiler = "",
    include: Include = None,
    param: Param = None,
    json: AsJson = False,
    out: Out = None,
    junit: JUnit = None,
    strict: Strict = False,
) -> None:
    """Is it right? Against a float64 oracle, on fuzzed workloads, with guard bands, in a process of its own."""
    from assay.errors import UsageError

    if not what and not everything:
        raise UsageError("check what?", fix="name an op, a kernel or a file (assay check gelu/triton), or say --all")
    from assay import host
    from assay.check.verb import Options, plan
    from assay.target import target as named

    options = Options(
        op=op,
        dtypes=split(dtype),
        workload=workload,
        workloads=workloads,
        thorough=thorough,
        limit=limit,
        target=named(target) if target else host.target(),
        seconds=timeout,
        jobs=jobs,
        seed=seed,
        parameters=parameters(param or []),
        backends=split(backend),
    )
    with screen.progress(None, "check", json, "reading the kernels"):
        planned = plan(selection.chosen(what or [], options, whole_library=everything), options)
    records, interrupted = perform(planned, options, json, out)
    about: dict[str, Any] = {"verb": "check", "run": options.run, "interrupted": interrupted}
    if json:
        screen.write_document(records, **about)
    else:
        report(records, interrupted, strict=strict)
    keep(records, out, junit, json, strict, **about)
    sys.exit(screen.exit_code(records, strict, interrupted))


def perform(jobs: list[Job], options: Any, json: bool, out: Path | None = None) -> tuple[list[Record], bool]:
    """Run the jobs, printing each record when it is ready. Return the records, and whether it was interrupted."""
    from assay.check.verb import run

    shared = selection.shared(j.kernel for j in jobs)
    width = max(len(j.kernel.name) for j in jobs)
    show = None if json else lambda record: screen.console().print(line(record, width, shared))

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, verb="check", run=options.run, interrupted=True)

    names = [f"{j.kernel.name} {j.dtype}" for j in jobs]
    return screen.collect(run(jobs, options), names, "check", json, show, save)


def keep(
    records: list[Record], out: Path | None, junit: Path | None, json: bool, strict: bool = False, **about: Any
) -> None:
    """Write the files that were asked for, and print where they are."""
    if out and screen.write_document(records, out, **about) and not json:
        screen.console().print(f"records: {out}")
    if junit and keeping.junit_written(records, junit, about["verb"], strict) and not json:
        screen.console().print(f"JUnit: {junit}")


def line(record: Record, width: int, shared: Collection[str] = ()) -> str:
    """Return the line of a record. `shared`: addresses of kernels in several files, which are shown with the file."""
    from rich.markup import escape

    reason = record.reason.splitlines()[0] if record.failed else record.reason
    name, status = escape(record.named(shared)), screen.status_text(record.status)
    return f"{name:<{width}}  {record.dtype:<4}  {status}  {escape(reason)}"


def report(records: list[Record], interrupted: bool, out: Path | None = None, strict: bool = False) -> None:
    """Print what failed, in full, then the counts, whether `strict` makes any a failure, and where the document is, if
    it was written before."""
    from rich.markup import escape

    from assay.check.evidence import first_seen
    from assay.record import namesakes

    terminal = screen.console()
    apart = namesakes(records)
    for record in (r for r in records if str(r.status) == "fail"):
        terminal.print(f"\n[bold red]✗ {escape(record.named(apart))}[/] on [bold]{escape(record.workload)}[/]")
        terminal.print(escape(located(record.reason)))
        if record.source.get("file"):
            line = f":{record.source['line']}" if record.source.get("line") else ""  # of a whole file: none
            terminal.print(f"  source  {record.source['file']}{line}", style="dim")
        if first := first_seen(record):
            terminal.print(f"  seen    first on {escape(first)}", style="dim", soft_wrap=True)
        terminal.print(f"  replay  {escape(record.replay)}", style="cyan", soft_wrap=True)
    unjudged = sum(str(r.status) not in ("pass", "fail") for r in records)
    ending = (
        f" — with --strict, {unjudged} without a verdict count{'s' * (unjudged == 1)} as failed"
        if strict and unjudged
        else ""
    )
    ending += " — interrupted; this is what was done" if interrupted else ""
    terminal.print(f"\n{screen.summary(records)}{ending}")
    if out:
        terminal.print(f"records: {out}")
