"""The original of a packed layer as an op, so that `assay bench` can time the two side by side. It is not part of the
library, which has no ops that only PyTorch computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.kernel import kernel
from assay.op import Axis, Tensor, op

FILE, NAME = Path(__file__), "plain_linear/torch:plain"


def magnitude(x: Any, weight: Any, bias: Any) -> Any:
    return plain_linear.reference(x.abs(), weight.abs(), None if bias is None else bias.abs())


@op(
    axes={"m": Axis(typical=1), "n": Axis(typical=4096), "k": Axis(typical=4096)},
    inputs={
        "x": Tensor("m", "k", range=(-16, 16)),
        "weight": Tensor("n", "k", range=(-1, 1)),
        "bias": Tensor("n", optional=True, range=(-16, 16)),
    },
    outputs={"out": Tensor("m", "n")},
    independent="m",
    operations=lambda w: 2 * w.m * w.n * w.k,
    magnitude=magnitude,
    terms=lambda w: w.k,
)
def plain_linear(x: Any, weight: Any, bias: Any) -> Any:
    from torch.nn.functional import linear

    return linear(x, weight, bias)


@kernel("plain_linear", backend="torch")
def plain(x: Any, weight: Any, bias: Any, *, out: Any) -> None:
    import torch

    if bias is None:
        torch.mm(x, weight.t(), out=out)
    else:
        torch.addmm(bias, x, weight.t(), out=out)


def workload(packed: str) -> str:
    """Return the plain layer's workload for one of mx_linear or int_linear: the same sizes, without the format."""
    return ",".join(part for part in packed.split(",") if not part.startswith(("block=", "bits=", "group=")))
