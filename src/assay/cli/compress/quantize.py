"""`assay compress quantize`: a model in fewer bits."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli import options as common
from assay.cli.compress import options as shared
from assay.cli.compress.study import finish

Widths = Annotated[str, typer.Option("--width", help="4,8,16: bits of a number, from 2 to 32.")]
Format = Annotated[
    str,
    typer.Option("--format", help="A curve for each of fixed,int,log,bfp,mxint8, …: docs/formats.md; W is a width."),
]
Fraction = Annotated[
    int | None, typer.Option("--fraction", min=0, help="Bits of fixed point after the point; default: by tensor.")
]
Methods = Annotated[str, typer.Option("--method", help="ptq: after training; qat: trained on in the format.")]
Of = Annotated[str, typer.Option("--of", help="weights,biases,inputs.")]
Epochs = Annotated[int, typer.Option("--epochs", min=0, help="Of training for qat and the control.")]

NoTime = Annotated[
    bool, typer.Option("--no-time", help="Time no packed model: for several runs beside each other on one device.")
]


def quantize(
    model: shared.Model = "mnist-cnn",
    width: Widths = "4,8,16",
    format: Format = "fixed",
    fraction: Fraction = None,
    method: Methods = "ptq,qat",
    of: Of = "weights,biases,inputs",
    epochs: Epochs = 1,
    data: shared.Data = "",
    seeds: shared.Seeds = "0",
    quick: shared.Quick = False,
    tokens: shared.Tokens = 0,
    no_time: NoTime = False,
    save: shared.Save = None,
    device: common.Device = "",
    json: common.AsJson = False,
    out: common.Out = None,
    html: shared.Html = None,
    png: shared.Png = None,
) -> None:
    """How right is a model with fewer bits? After training (PTQ) and trained on (QAT), beside a control that is trained
    on without the format."""
    from assay.compress.planning import Quantize
    from assay.compress.planning import quantize as planned

    options = Quantize(
        widths=shared.integers(width, "width"),
        formats=common.split(format),
        fraction=fraction,
        methods=common.split(method),
        of=common.split(of),
        epochs=epochs,
        data=data,
        seeds=shared.integers(seeds, "seeds"),
        quick=quick,
        tokens=tokens,
        timed=not no_time,
        save=save,
        device=device,
    )
    finish(planned(model, options), json, out, (html, png))
