"""`assay model compile`: what torch.compile costs and what it buys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli import screen
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from assay.record import Record

Model = Annotated[str, typer.Argument(help="mnist-cnn, resnet18, minilm, … or module:function of your own.")]
Batches = Annotated[str, typer.Option("--batch", help="Sizes: 1,16,64. With several, one process meets them all too.")]
States = Annotated[str, typer.Option("--state", help="cold,disk,warm,sweep; default: all.")]
Modes = Annotated[str, typer.Option("--mode", help="default,reduce-overhead,max-autotune.")]
Dynamic = Annotated[
    bool | None, typer.Option("--dynamic/--static", help="Shapes. Default: a size that changed once is dynamic.")
]
Calls = Annotated[int, typer.Option("--calls", min=1, help="How many are counted one after the other.")]
Rounds = Annotated[int, typer.Option("--rounds", min=6, help="Each takes eager and compiled, the first in turn.")]
Budget = Annotated[float, typer.Option("--budget", min=0.1, help="Seconds of calls for each of eager and compiled.")]
Limit = Annotated[
    int, typer.Option("--recompile-limit", min=0, help="Compilations of one function; 0: torch's own limit.")
]
Seed = Annotated[int, typer.Option("--seed", help="Of weights and inputs.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one process.")]
Html = Annotated[Path | None, typer.Option("--html", help="The tables and charts as a page of its own.")]


_WIDE = 90
"""The fewest columns of a terminal that shows all columns of the table."""


def compile_(
    model: Model,
    batch: Batches = "64",
    dtype: shared.DType = "fp32",
    device: common.Device = "",
    state: States = "",
    mode: Modes = "default",
    dynamic: Dynamic = None,
    backend: shared.Backend = "inductor",
    calls: Calls = 1000,
    rounds: Rounds = 10,
    budget: Budget = 4.0,
    threads: shared.Threads = 0,
    recompile_limit: Limit = 0,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: shared.Png = None,
    strict: common.Strict = False,
) -> None:
    """torch.compile from a cold process, a warm disk cache and a warm process: seconds, graphs, kernels, break-even."""
    from assay.bench.sweep import axis_values
    from assay.models.studies.compile.planning import STATES, Effort, Options, plan
    from assay.models.studies.compile.verb import run

    ending = Ending(json, out, (html, png), strict)
    ending.check()
    options = Options(
        batches=tuple(axis_values(batch)),
        dtype=dtype,
        device=device,
        states=common.split(state) or tuple(STATES),
        modes=common.split(mode),
        dynamic=dynamic,
        backend=backend,
        timeout=timeout,
        effort=Effort(rounds=rounds, budget=budget, calls=calls, threads=threads, seed=seed, limit=recompile_limit),
    )
    plans = plan(model, options)
    finish(
        "compile",
        lambda tick: run(plans, options, tick),
        sum(map(len, plans)),
        ending,
        run=options.run,
        show=show,
    )


def show(records: list[Record], terminal: Any) -> None:
    from assay.report.model_compile import parts

    screen.print_parts(parts(records, terminal.width >= _WIDE), terminal)
