"""`assay machine`: what can this device do?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import screen
from assay.cli.options import AsJson, Device, Out, Strict
from assay.units import si

if TYPE_CHECKING:
    from assay.machine.model import Figure
    from assay.record import Record

Only = Annotated[str, typer.Option("--only", help="One family or figure: bandwidth, latency, dram.copy, …")]
Prove = Annotated[
    str, typer.Option("--prove", help="Build the GPU's probes for a target (sm_90a) and prove their code, run nothing.")
]
List = Annotated[bool, typer.Option("--list", help="What would be measured, and what each probe's code must show.")]


def machine(
    only: Only = "",
    device: Device = "",
    prove: Prove = "",
    list_: List = False,
    json: AsJson = False,
    out: Out = None,
    strict: Strict = False,
) -> None:
    """Measure this device: bandwidths, latencies, peaks, launch costs, clocks. Every GPU probe proves its machine code
    first. A whole run is kept as the device's model."""
    from assay.machine.verb import Options, chosen_probes, device_kind
    from assay.machine.verb import machine as measure

    options = Options(only=only, device=device, prove=prove)
    kind = "cuda" if prove else device_kind(options)
    planned = chosen_probes(kind, only)
    if list_:
        _list(planned)
        return
    about: dict[str, Any] = {"verb": "machine", "run": options.run}

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, **about)

    names = [*(f"machine/{probe.key}" for probe in planned), "machine"]
    records, interrupted = screen.collect(measure(options), names, "machine", json, save=save)
    if out:
        screen.write_document(records, out, **about, interrupted=interrupted)
    if json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        _show(records, interrupted, out)
    sys.exit(screen.exit_code(records, strict, interrupted))


def spread(figure: Figure) -> str:
    """Return how far the samples lie from the median, in percent."""
    value = figure.value
    if not value or figure.low is None or figure.high is None:
        return ""
    return f"−{100 * (value - figure.low) / value:.1f} +{100 * (figure.high - value) / value:.1f} %"


def published(figure: Figure) -> str:
    """Return the published value, a range as a range; empty if there is none."""
    known = figure.published
    if known is None:
        return ""
    if isinstance(known, tuple):
        low, high = known
        return f"{low:g}–{si(high, figure.unit, 3)}" if low != high else si(low, figure.unit, 3)
    return si(known, figure.unit, 3)


def _list(planned: list[Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("family", "figure", "what", "proof"):
        table.add_column(column)
    for probe in planned:
        proof = probe.proof if hasattr(probe, "proof") else str(list(probe.instances.values())[-1])
        table.add_row(probe.family, probe.key, escape(probe.says), escape(proof))
    screen.console().print(table)


def _show(records: list[Record], interrupted: bool, out: Path | None) -> None:
    from rich.markup import escape
    from rich.table import Table

    from assay.machine.evidence import MachineEvidence

    terminal = screen.console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("figure", "value", "spread", "clock", "published"):
        table.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    for record in records:
        for key, figure in (MachineEvidence.of(record).figures or {}).items():
            clock = f"{figure.clock_mhz:.0f} MHz" if figure.clock_mhz else ""
            table.add_row(key, si(figure.value, figure.unit, 3), spread(figure), clock, published(figure))
    if table.row_count:
        terminal.print(table)
    for record in records:
        if str(record.status) in ("fail", "skipped") and record.kernel != "machine":
            terminal.print(f"{screen.status_text(str(record.status))}  {record.kernel}: {escape(record.reason)}")
            proof = MachineEvidence.of(record).proof
            for name, finding in ((proof and proof.instances) or {}).items():
                for line in finding.lines:
                    terminal.print(f"    {escape(name)}  {escape(line)}", style="dim", soft_wrap=True)
    model = next((m for r in records if (m := MachineEvidence.of(r).model)), None)
    if model:
        terminal.print(f"\n{escape(model.device)}, measured {model.time}")
    terminal.print(screen.summary(records) + (" — interrupted; this is what was done" if interrupted else ""))
    if out:
        terminal.print(f"records: {out}")
