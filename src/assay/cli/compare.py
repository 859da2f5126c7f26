"""`assay compare`: did it change?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli import screen
from assay.cli.fitted import Repeating
from assay.cli.history import Place, device

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.compare.evidence import Measured
    from assay.record import Record

Old = Annotated[
    str,
    typer.Argument(
        metavar="OLD",
        help="A run (its id or the beginning of it), `last~1`, or FILE.json. "
        "Default: the newest two timed runs that have a kernel, workload and device in common.",
    ),
]
New = Annotated[str, typer.Argument(metavar="NEW", help="Likewise; default: the last timed run.")]
Strict = Annotated[bool, typer.Option("--strict", help="What is ambiguous counts as a failure.")]
_COLOURS = {"SAME": "dim", "FASTER": "green", "SLOWER": "bold red", "AMBIGUOUS": "magenta"}


def compare(
    old: Old = "",
    new: New = "last",
    store: Place = None,
    json: common.AsJson = False,
    out: common.Out = None,
    strict: Strict = False,
) -> None:
    """Did it change? SAME, FASTER, SLOWER or AMBIGUOUS per kernel and workload, by the rule in docs/compare.md."""
    from assay.compare.verb import compare as ask
    from assay.errors import UsageError

    pair = (side(old, store), side(new, store)) if old else newest_pair(store)
    if old and not old.endswith(".json") and {r.run for r in pair[0]} == {r.run for r in pair[1]}:
        raise UsageError(
            f"{old} and {new} are the same run", fix="assay compare last~1 last; alone, it finds the newest pair"
        )
    records = list(ask(*pair))
    about: dict[str, Any] = {"verb": "compare", "run": records[0].run}
    if out:
        screen.write_document(records, out, **about)
    if json:
        screen.write_document(records, **about)
    else:
        show(records)
    bad = {"fail", "inconclusive"} if strict else {"fail"}
    sys.exit(int(any(str(r.status) in bad for r in records)))


def newest_pair(store: str | None) -> tuple[list[Record], list[Record]]:
    """Return the records of two runs, the older one first: the newest run that timed something in common with an
    earlier one, and the newest such earlier run."""
    from assay.errors import UsageError
    from assay.store import open_store

    with open_store(store, create=store is None) as opened:
        timed = opened.timed()
        runs = list(timed)
        for number, new in enumerate(runs):
            old = next((run for run in runs[number + 1 :] if not timed[run].isdisjoint(timed[new])), None)
            if old is not None:
                return list(opened.records(run=old, verb="bench")), list(opened.records(run=new, verb="bench"))
    count = "there is 1 timed run" if len(runs) == 1 else f"there are {len(runs)} timed runs"
    why = (
        f"{count}, and no two have a kernel, workload and device in common" if runs else "no timed run is recorded yet"
    )
    raise UsageError(
        why,
        fix="run the same `assay bench …` twice; `assay history --verb bench` lists the runs",
    )


def side(name: str, store: str | None) -> list[Record]:
    """Return the records of a document or of a run in the store; `last~1` is the timed run before the last one."""
    from assay.cli.report import read_documents
    from assay.errors import UsageError
    from assay.store import open_store

    if name.endswith(".json"):
        if not Path(name).exists():
            raise UsageError(f"there is no {name}", fix="write one with `assay bench … --out FILE.json`")
        return read_documents([Path(name)])
    with open_store(store, create=store is None) as opened:
        timed = [run.id for run in opened.runs() if "bench" in run.verbs]
        if name == "last" or name.startswith("last~"):
            back = int(name[5:] or 0) if name[5:].isdigit() or name == "last" else -1
            if not 0 <= back < len(timed):
                raise UsageError(
                    f"there is no run '{name}' among {len(timed)} timed ones", fix="`assay history` lists them"
                )
            chosen = sorted(timed, reverse=True)[back]
        else:
            fitting = [run for run in timed if run.startswith(name)]
            if len(fitting) != 1:
                raise UsageError(f"{len(fitting)} timed runs begin with '{name}'", fix="`assay history` lists them")
            chosen = fitting[0]
        return list(opened.records(run=chosen, verb="bench"))


def show(records: list[Record]) -> None:
    from rich.table import Table

    from assay.compare.evidence import CompareEvidence
    from assay.record import namesakes
    from assay.units import duration

    terminal = screen.console()
    apart = namesakes(records)
    judged = [(r, e) for r in records if (e := CompareEvidence.of(r)).old and e.new]
    devices = dict.fromkeys(device(e.device) for _, e in judged)
    for which in ("old", "new"):
        terminal.print(f"{which}  {_runs(e.old if which == 'old' else e.new for _, e in judged)}", markup=False)
    if len(devices) == 1:
        terminal.print(f"on   {''.join(devices)}", markup=False)
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("kernel", no_wrap=True)
    table.add_column("workload", no_wrap=True)
    if len(devices) > 1:
        table.add_column("device")
    for column in ("old", "new", "new/old", "verdict"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("why")
    for r, e in judged:
        assert e.old and e.new
        table.add_row(
            r.named(apart),
            r.workload,
            *([device(e.device)] if len(devices) > 1 else []),
            duration(e.old.median or 0.0),
            duration(e.new.median or 0.0),
            f"{e.ratio:.4f}",
            f"[{_COLOURS[e.verdict]}]{e.verdict}[/]",
            r.reason.partition(": ")[2],
        )
    terminal.print(Repeating(table, 2))
    for side in ("old", "new"):
        alone = [r.named(apart) for r in records if not r.evidence and side in r.reason]
        if alone:
            terminal.print(f"only the {side} run has: {', '.join(alone)}", style="dim")
    counts = {v: sum(e.verdict == v for _, e in judged) for v in _COLOURS}
    terminal.print("\n" + ", ".join(f"[{_COLOURS[v]}]{n} {v}[/]" for v, n in counts.items() if n))


def _runs(sides: Iterable[Measured | None]) -> str:
    """Return the runs and the commits of one side: a document may hold several."""
    runs = dict.fromkeys(f"{one.run} (commit {one.commit})" if one.commit else one.run for one in sides if one)
    return ", ".join(runs)
