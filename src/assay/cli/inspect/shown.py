"""Prints an inspection in a terminal: the summary of the code, then every instruction."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from assay.cli import screen

if TYPE_CHECKING:
    from assay.inspect import Inspection
    from assay.inspect.evidence import Launch, Summary


def show(one: Inspection, brief: bool, shared: Collection[str] = ()) -> None:
    """Print an inspection. `shared`: addresses of kernels in several files, which are shown with the file."""
    from rich.markup import escape
    from rich.table import Table

    from assay.cli.inspect.instructions import instructions

    terminal = screen.console()
    record = one.record
    name = escape(record.named(shared))
    if not record.instructions:
        terminal.print(f"{screen.status_text(str(record.status))}  {name}: {escape(record.reason)}")
        return
    e = one.evidence
    assert e.summary
    terminal.print(
        f"[bold]{name}[/]  {record.workload}  {e.target}  {escape(e.name)}  [dim]{e.compiler}[/]",
        soft_wrap=True,
    )
    about = Table(box=None, show_header=False, pad_edge=False)
    about.add_column(style="dim", no_wrap=True)
    about.add_column()
    for label, text in facts(e.summary, e.launch):
        about.add_row(label, escape(text))
    terminal.print(about)
    if str(record.status) == "fail":
        terminal.print(f"{screen.status_text('fail')}  {escape(record.reason)}", soft_wrap=True)
    for line in e.unavailable or ():
        terminal.print(f"unavailable  {line}", style="yellow")
    if not brief:
        table, left_out = instructions(record.instructions, terminal.width)
        screen.print_parts([table], terminal)
        if left_out:
            what = f"not shown at this width: {', '.join(left_out)}"
            terminal.print(f"{what}; a wider terminal, a pipe and --csv show every column", style="dim")
    terminal.print()


def facts(s: Summary, launch: Launch | None) -> list[tuple[str, str]]:
    """Return the summary line by line, each with its label."""
    lines = [("code", f"{s.instructions} instructions: " + ", ".join(f"{n} {p}" for p, n in s.mix.items()))]
    lines.append(
        (
            "resources",
            f"{s.registers} registers, {s.shared.static} + {s.shared.dynamic} bytes of shared memory, "
            + (f"{s.spills.stores} bytes spilled" if s.spills.most else "no spills"),
        )
    )
    if launch:
        lines.append(("launch", f"grid {tuple(launch.grid)}, block {tuple(launch.block)}"))
    o = s.occupancy
    if o.share is not None:
        lift = f"; {o.lift}" if o.lift else ""
        lines.append(
            (
                "occupancy",
                f"{o.share:.0%}: {o.blocks} blocks, {o.warps} warps; limit: {', '.join(o.limits)}{lift}",
            )
        )
    elif o.by_block:
        each = ", ".join(f"{b.block}: {b.share:.0%}" for b in o.by_block)
        lines.append(("occupancy", f"by threads a block: {each}"))
    widths = "; ".join(f"{kind} " + ", ".join(f"{n} × {w} bits" for w, n in c.items()) for kind, c in s.widths.items())
    lines.append(("memory", widths or "none"))
    m = s.multiply_add
    lines.append(("multiply-add", f"{m.fused} fused, {m.multiplies} multiplies and {m.adds} adds apart"))
    lines.append(("predicated", f"{s.predicated:.0%}"))
    if s.cycles is not None:
        lines.append(("issue", f"{s.cycles} cycles a warp at least, on its longest way through"))
    for loop in s.loops:
        copies = f", about {loop.copies} copies" if loop.copies > 1 else ""
        at = f" at line {loop.line}" if loop.line else ""
        size = f"{loop.instructions} instructions{at}, depth {loop.depth}"
        lines.append(("loop", f"{size}{copies}, {loop.cycles} cycles to issue"))
    lines += [("ptxas", remark) for remark in s.remarks or ()]
    return lines
