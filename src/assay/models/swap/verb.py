"""assay.swap: puts kernels into a model, and takes them out again bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.models.swap.report import Report

if TYPE_CHECKING:
    from torch import nn

    from assay.models.swap.rules import Value


def swap(model: nn.Module, rules: Mapping[str, Value], *, tuned: bool = False) -> Report:
    """Put kernels into the model by `rules`: `swap(model, {"gelu": "gelu/triton", "encoder.*.norm": "layernorm"})`.

    It takes effect at once. The report undoes it, by `undo()` or at the end of a `with` block. A rule that matches
    nothing, or a kernel that cannot run here or computes another function, is an error that leaves the model unchanged
    (docs/swap.md).

    With `tuned`, each kernel uses the values that `assay tune` chose for the shape class of a call, and the report says
    which run they come from; if there are none, the kernel uses its defaults."""
    from assay.models.swap.plan import Plan
    from assay.models.swap.wrapping import apply, undo

    if not isinstance(rules, Mapping):
        raise UsageError(f"the rules are a {type(rules).__name__}, not a dict", fix='e.g. {"gelu": "gelu/triton"}')
    plan = Plan(model, rules, tuned)
    apply(plan.changes)
    written = {key: "None" if value is None else str(value) for key, value in rules.items()}
    return Report(type(plan.model).__name__, written, plan.entries, lambda: undo(plan.changes))
