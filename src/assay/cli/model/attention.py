"""`assay model attention`: check and bench of attention's kernels over sequence lengths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import bench as benching
from assay.cli import check as checking
from assay.cli import options as common
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from assay.record import Record

What = Annotated[list[str] | None, typer.Argument(help="Kernels: attention/triton 'attention/torch*'. Default: all.")]
Lengths = Annotated[str, typer.Option("--seq", help="Lengths: 128,512,1024 or 128..4096:x2. Default: by device.")]
Heads = Annotated[int, typer.Option("--heads", min=1)]
Dim = Annotated[int, typer.Option("--dim", min=1, help="Of each head.")]
Batch = Annotated[int, typer.Option("--batch", min=1)]
Causal = Annotated[str, typer.Option("--causal", help="yes, no or both.")]
DTypes = Annotated[str, typer.Option("--dtype", help="fp32,bf16,fp16; default: fp32 on a CPU, bf16 on a GPU.")]
Against = Annotated[str, typer.Option("--against", help="The baseline: torch, torch:naive or an address.")]
Html = Annotated[Path | None, typer.Option("--html", help="Time and memory over length, as a page of its own.")]

_CAUSAL = {"yes": (True,), "no": (False,), "both": (False, True)}


def attention(
    what: What = None,
    seq: Lengths = "",
    heads: Heads = 8,
    dim: Dim = 64,
    batch: Batch = 1,
    causal: Causal = "both",
    dtype: DTypes = "",
    against: Against = "torch",
    rounds: benching.Rounds = 5,
    budget: benching.Budget = 4.0,
    threads: benching.Threads = 0,
    timeout: benching.Timeout = 120.0,
    seed: common.Seed = 0,
    device: common.Device = "",
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: shared.Png = None,
    strict: common.Strict = False,
) -> None:
    """Attention, naive against fused: each kernel checked, then timed over sequence lengths, with its peak memory."""
    from assay.bench.sweep import axis_values
    from assay.errors import UsageError
    from assay.models.studies.attention import Options, plan, run

    ending = Ending(json, out, (html, png), strict)
    ending.check()
    if causal not in _CAUSAL:
        raise UsageError(f"--causal {causal}: neither yes, no nor both", fix="--causal both")
    options = Options(
        kernels=tuple(what or ("attention",)),
        lengths=tuple(axis_values(seq)) if seq else (),
        batch=batch,
        heads=heads,
        dim=dim,
        causal=_CAUSAL[causal],
        dtypes=common.split(dtype),
        against=against,
        rounds=rounds,
        budget=budget,
        threads=threads,
        seconds=timeout,
        seed=seed,
    )
    planned = plan(options)
    finish("attention", lambda tick: run(planned, tick), len(planned), ending, run=options.run, show=show)


def show(records: list[Record], terminal: Any) -> None:
    """Print a line for each check, then a table for each workload."""
    checks = [r for r in records if r.verb == "check"]
    width = max((len(r.kernel) for r in checks), default=0)
    for record in checks:
        terminal.print(checking.line(record, width))
    benching.show([r for r in records if r.verb == "bench"], terminal)
