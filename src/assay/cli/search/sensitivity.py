"""`assay search sensitivity`: what does a model lose if one layer alone has fewer bits?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli.compress.options import Html, Png, integers
from assay.cli.search import options as shared
from assay.cli.search.study import finish

if TYPE_CHECKING:
    from assay.record import Record

Format = Annotated[str, typer.Option("--format", help="fixed, int, log, bfp, or int:W:group=128.")]
Widths = Annotated[str, typer.Option("--width", help="2,4,8: bits, from 2 to 32.")]
Of = Annotated[str, typer.Option("--of", help="weights,inputs.")]


def sensitivity(
    model: shared.Model = "mnist-cnn",
    format: Format = "fixed",
    width: Widths = "2,3,4,5,6,7,8",
    of: Of = "weights,inputs",
    seeds: shared.Seeds = "0",
    quick: shared.Quick = False,
    tokens: shared.Tokens = 0,
    workers: shared.Workers = None,
    ray: shared.Ray = "",
    timeout: shared.Timeout = 3600.0,
    memory: shared.Memory = 0.0,
    storage: shared.Storage = "",
    study: shared.Name = "",
    restart: shared.Restart = False,
    device: common.Device = "",
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: Png = None,
) -> None:
    """What does a model lose if one layer alone has fewer bits? Each tensor in each width, all others as they are, on
    the validation split. The test split is not read."""
    from assay.search.options import Sensitivity
    from assay.search.planning import sensitivity as planned

    options = Sensitivity(
        format=format,
        widths=integers(width, "width"),
        of=common.split(of),
        seeds=integers(seeds, "seeds"),
        quick=quick,
        tokens=tokens,
        workers=workers,
        ray=ray,
        timeout=timeout,
        memory=memory,
        storage=storage,
        study=study,
        restart=restart,
        device=device,
    )
    finish(planned(model, options), json, out, (html, png), show)


def show(records: list[Record], terminal: Any) -> None:
    """Print a row for each tensor and a column for each width: points against the control, as the mean over seeds."""
    from statistics import mean

    from rich.table import Table

    from assay.search.evidence import SearchEvidence

    cells: dict[tuple[str, int], list[float]] = {}
    for found in map(SearchEvidence.of, records):
        if found.role == "trial" and found.accuracy is not None and found.control_accuracy is not None:
            where = found.parameters["tensor"], int(found.parameters["width"])
            cells.setdefault(where, []).append(100 * (found.accuracy - found.control_accuracy))
    widths = sorted({width for _, width in cells})
    table = Table(box=None, pad_edge=False, header_style="bold", title="points against the control, by width")
    table.add_column("alone")
    for width in widths:
        table.add_column(str(width), justify="right")
    for tensor in sorted({tensor for tensor, _ in cells}):
        row = [f"{mean(cells[tensor, w]):+.2f}" if (tensor, w) in cells else "" for w in widths]
        table.add_row(tensor, *row)
    terminal.print(table)
