"""Runs a curve to its end: a bar while it runs, then its document or its table, and the exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from assay.cli import check as checking
from assay.cli import screen
from assay.cli.model.study import draw

if TYPE_CHECKING:
    from assay.compress.evidence import CompressEvidence
    from assay.compress.planning import Plan
    from assay.record import Record


def finish(planned: Plan, json: bool, out: Path | None, charts: tuple[Path | None, ...]) -> NoReturn:
    # Before torch is loaded: threads that wait must not spin, or on a busy machine each step takes twice the CPU time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from assay.compress.curve import run
    from assay.report.pictures import check

    check(*charts)
    about: dict[str, Any] = {"verb": "compress", "study": planned.points[0].study, "run": planned.options.run}
    done: list[Record] = []

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, **about, interrupted=True)

    tell = (lambda text: None) if json else (lambda text: print(text, file=sys.stderr))
    with screen.progress(planned.total, f"{about['study']} {planned.entry.name}", json, late=True) as tick:
        records, interrupted = screen.drain(run(planned, lambda text: tick(text, len(done)), tell), done, None, save)
    pictures = draw(about["study"], records, *charts)
    if json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        show(records, screen.console())
        checking.report(records, interrupted)
        for file in pictures:
            screen.console().print(f"chart: {file}", soft_wrap=True)
        for file in filter(None, (record.evidence.get("file") for record in records)):
            screen.console().print(f"model: {file}", soft_wrap=True, highlight=False)
    checking.keep(records, out, None, json, **about, interrupted=interrupted)
    sys.exit(screen.exit_code(records, False, interrupted))


def show(records: list[Record], terminal: Any) -> None:
    from rich.table import Table

    from assay.compress.evidence import CompressEvidence

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, side in (("method", "left"), ("what", "left"), ("seed", "right"), ("validation", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for column in ("test", "points", "bits", "smaller", "file", "latency"):
        table.add_column(column, justify="right")
    for record in records:
        found = CompressEvidence.of(record)
        if found.accuracy is None or found.base_accuracy is None or not found.bits or not found.base_bits:
            continue
        epochs = f"{found.epochs} epoch{'s' * (found.epochs != 1)}"
        what = found.format or (f"{found.sparsity:g} %" if found.sparsity is not None else epochs)
        table.add_row(
            found.method,
            what,
            f"{found.seed}",
            f"{found.validation or 0:.2%}",
            f"{found.accuracy:.2%}",
            f"{100 * (found.accuracy - found.base_accuracy):+.2f}",
            f"{found.bits:,}",
            f"{found.base_bits / found.bits:.2f} ×",
            f"{found.file_bytes or 0:,} B",
            "simulated" if found.simulated else _latency(found),
        )
    terminal.print(table)
    for line in differences([CompressEvidence.of(r) for r in records]):
        terminal.print(line, markup=False, soft_wrap=True)


def _latency(found: CompressEvidence) -> str:
    from assay.units import duration

    if found.latency is None or not found.base_latency:
        return ""
    return f"{duration(found.latency)}, {found.base_latency / found.latency:.2f} × as fast"


def differences(found: list[CompressEvidence]) -> list[str]:
    """Return a line for each gain of a method over the other and over the control, at each place of the curve."""
    from assay.compress.paired import difference
    from assay.compress.planning import CONTROL

    lines = []
    for at in dict.fromkeys((e.format, e.sparsity) for e in found if e.method != CONTROL):
        here = {m: [e for e in found if e.method == m and (e.format, e.sparsity) == at] for m in PAIRS}
        named = at[0] or f"{at[1]:g} % dropped"
        for better, other in PAIRS.items():
            for second, those in ((other, here.get(other) or []), (CONTROL, [e for e in found if e.method == CONTROL])):
                if second and here[better] and those and (gap := difference(here[better], those)):
                    lines.append(f"{named}: {better} − {second} {gap}")
    return lines


PAIRS = {"qat": "ptq", "ptq": "", "l1": "random", "random": ""}
"""Method → the one that it should not be worse than, besides the control."""
