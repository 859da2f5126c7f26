"""`assay compress prune`: a model with fewer weights."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli import options as common
from assay.cli.compress import options as shared
from assay.cli.compress.study import finish

Sparsities = Annotated[str, typer.Option("--sparsity", help="50,90: per cent that are dropped.")]
Methods = Annotated[str, typer.Option("--method", help="l1: the smallest are dropped; random: any.")]
Scope = Annotated[str, typer.Option("--scope", help="local: in each layer; global: over all together.")]
Of = Annotated[str, typer.Option("--of", help="weights, activations, or both.")]
Recover = Annotated[int, typer.Option("--recover", min=0, help="Epochs of training afterwards, also of the control.")]


def prune(
    model: shared.Model = "mnist-cnn",
    sparsity: Sparsities = "50,90",
    method: Methods = "l1,random",
    scope: Scope = "local",
    of: Of = "weights",
    recover: Recover = 1,
    data: shared.Data = "",
    seeds: shared.Seeds = "0",
    quick: shared.Quick = False,
    tokens: shared.Tokens = 0,
    save: shared.Save = None,
    device: common.Device = "",
    json: common.AsJson = False,
    out: common.Out = None,
    html: shared.Html = None,
    png: shared.Png = None,
) -> None:
    """How right is a model with fewer weights, or fewer activations? By size and at random, beside a control that is
    trained on without pruning."""
    from assay.compress.planning import Prune
    from assay.compress.planning import prune as planned

    options = Prune(
        sparsities=shared.numbers(sparsity, "sparsity"),
        methods=common.split(method),
        scope=scope,
        of=common.split(of),
        recover=recover,
        data=data,
        seeds=shared.integers(seeds, "seeds"),
        quick=quick,
        tokens=tokens,
        save=save,
        device=device,
    )
    finish(planned(model, options), json, out, (html, png))
