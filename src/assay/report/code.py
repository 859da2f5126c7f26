"""One self-contained page: source, IR, PTX and SASS of kernels side by side, with related lines linked."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.bench.evidence import BenchEvidence
from assay.inspect import Inspection
from assay.record import Record
from assay.report import theme
from assay.report.page import environment
from assay.units import si

TEMPLATES = Path(__file__).parent / "template"

PIPE_COLOURS = {
    "fma": "#0072B2",
    "alu": "#009E73",
    "xu": "#CC79A7",
    "lsu": "#E69F00",
    "tensor": "#D55E00",
    "fp64": "#56B4E9",
    "uniform": "#6A51A3",
    "tex": "#B3A125",
    "tma": "#8C510A",
    "adu": "#44AA99",
    "cbu": "#8A9099",
    "none": "#C3C8CE",
}
"""Colours of the pipes in isa/pipes.py, Okabe and Ito's palette first. A column shows the name too, so nothing depends
on colour alone."""
OTHER_PIPES = ("#882255", "#999933", "#AA4499", "#6699CC", "#661100")
"""Colours of pipes not named above, in order of appearance."""
_SHOWN = (
    "instructions",
    "registers",
    "stack",
    "spills",
    "shared",
    "occupancy",
    "mix",
    "widths",
    "multiply_add",
    "loops",
)
"""Parts of an inspection's summary that the page shows."""


@dataclass(frozen=True)
class Code:
    """One compiled kernel, as the page shows it."""

    name: str
    """The kernel's address: `gelu/cuda`."""
    target: str
    symbol: str
    compiler: str
    rows: Sequence[Mapping[str, Any]]
    """Rows from `assay.inspect.row.Row.to_dict`, in order of address."""
    sources: Mapping[str, str]
    """The text of each file that the rows name."""
    ptx: str = ""
    ir: str = ""
    ir_kind: str = ""
    """`ttgir`"""
    blocks: Sequence[Mapping[str, Any]] = ()
    """Basic blocks: `number`, `start`, `end`, `follows` (numbers of blocks) and `loop_depth`."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    """Registers, spills, shared memory, occupancy …; nested values become small tables."""
    figures: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Numbers by address and label: each label is a column next to the SASS."""
    heading: Sequence[tuple[str, Any]] = ()
    """Label and value pairs shown first for this kernel."""


def code(one: Inspection, records: Iterable[Record] = ()) -> Code:
    """Return the page's data. `records` are bench's; those with the same machine code (by the hash of its .text) are
    shown."""
    assert one.table is not None
    rows, evidence, kept = one.record.instructions or [], one.evidence, one.record.evidence
    summary = {k: v for k, v in kept["summary"].items() if k in _SHOWN and v not in (None, {}, [])}
    if "launch" in kept:
        summary = {"launch": kept["launch"], **summary}
    return Code(
        one.record.kernel,
        evidence.target,
        evidence.symbol,
        evidence.compiler,
        rows,
        _sources(rows),
        one.ptx,
        one.ir,
        one.ir_kind,
        kept["blocks"],
        summary,
        heading=_measured(evidence.text_hash, records),
    )


def _sources(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the text of every file that a row names and that still exists."""
    named = dict.fromkeys(
        file for row in rows for file in (row["source_file"], *(f for f, _ in row["inlined"])) if file
    )
    texts = {}
    for file in named:
        with suppress(OSError):
            texts[file] = Path(file).read_text(errors="replace")
    return texts


def _measured(text_hash: str, records: Iterable[Record]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for r in records:
        if r.verb == "bench" and r.median and any(a.get("text_hash") == text_hash for a in r.artifacts):
            evidence = BenchEvidence.of(r)
            limit = f", {evidence.roofline.share:.0%} of the limit" if evidence.roofline else ""
            lines.append((r.workload, f"{si(r.median, 's')} cold, {evidence.gbps or 0:.0f} GB/s{limit}"))
    return lines[-6:]


def write(kernels: Sequence[Code], out: Path, title: str = "Assay inspect") -> Path:
    """Write the page to `out`."""
    text = render(kernels, title)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    return out


def render(kernels: Sequence[Code], title: str) -> str:
    texts = Numbered()
    packed = [pack(code, texts) for code in kernels]
    pipes = dict.fromkeys(pipe for kernel in packed for pipe in kernel["pipes"])
    return (
        environment()
        .get_template("code.html.j2")
        .render(
            title=title,
            kernels=packed,
            texts=texts.values,
            colours=colours(pipes),
            css=(TEMPLATES / "code.css").read_text(encoding="utf-8"),
            js=(TEMPLATES / "code.js").read_text(encoding="utf-8"),
            theme=theme,
        )
    )


def colours(pipes: Iterable[str]) -> dict[str, str]:
    """Return a colour for each pipe. A known pipe has the same colour on every page."""
    unknown = [pipe for pipe in pipes if pipe not in PIPE_COLOURS]
    return PIPE_COLOURS | {pipe: OTHER_PIPES[min(i, len(OTHER_PIPES) - 1)] for i, pipe in enumerate(unknown)}


class Numbered:
    """Stores each distinct value once and numbers it."""

    def __init__(self) -> None:
        self._at: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._at.setdefault(value, len(self._at))

    @property
    def values(self) -> list[Any]:
        return list(self._at)


def pack(code: Code, texts: Numbered) -> dict[str, Any]:
    """Return the kernel as columns, which are much smaller than rows; texts, files, places and pipes become numbers."""
    files, places, pipes, spaces = Numbered(), Numbered(), Numbered(), Numbered()
    for file in code.sources:
        files(file)

    def place(row: Mapping[str, Any]) -> int:
        if row["source_file"] is None or row["source_line"] is None:
            return -1
        chain = tuple((files(file), line) for file, line in row["inlined"])
        return places((files(row["source_file"]), row["source_line"], chain))

    rows = code.rows
    columns = {
        "address": [r["address"] for r in rows],
        "text": [r["text"] for r in rows],
        "encoding": [r["encoding"] for r in rows],
        "stall": [r["stall"] for r in rows],
        "yields": [int(r["may_yield"]) for r in rows],
        "write": [r["write_barrier"] for r in rows],
        "read": [r["read_barrier"] for r in rows],
        "waits": [sum(1 << barrier for barrier in r["waits"]) for r in rows],
        "reuse": [sum(1 << slot for slot in r["reuse"]) for r in rows],
        "block": [r["block"] for r in rows],
        "depth": [r["loop_depth"] for r in rows],
        "pipe": [pipes(r["pipe"]) for r in rows],
        "space": [spaces(r["space"]) for r in rows],
        "width": [r["width"] for r in rows],
        "live": [r["live_registers"] for r in rows],
        "place": [place(r) for r in rows],
        "ptx": [r["ptx_line"] or 0 for r in rows],
        "ir": [r["ir_line"] or 0 for r in rows],
    }
    return {
        "name": code.name,
        "target": code.target,
        "symbol": code.symbol,
        "compiler": code.compiler,
        "columns": columns,
        "files": files.values,
        "sources": [texts(text) for text in code.sources.values()],
        "places": places.values,
        "pipes": pipes.values,
        "spaces": spaces.values,
        "ptx": texts(code.ptx) if code.ptx else None,
        "ir": texts(code.ir) if code.ir else None,
        "ir_kind": code.ir_kind or "IR",
        "blocks": [dict(block) for block in code.blocks],
        "summary": dict(code.summary),
        "figures": {str(address): dict(values) for address, values in code.figures.items()},
        "heading": [list(pair) for pair in code.heading],
    }
