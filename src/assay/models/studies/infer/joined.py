"""A kernel's time alone beside its time inside the model, and the gain that each predicts. Pure arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.models.studies.infer.alone import Times, baseline
from assay.models.studies.infer.evidence import Alone, Called, Gain, Inside, Layer, Predicted, Promise, Row

_OPERATORS = {
    "gelu": "aten::gelu",
    "gelu_tanh": "aten::gelu",
    "silu": "aten::silu",
    "layernorm": "aten::layer_norm",
    "rmsnorm": "aten::rms_norm",
    "softmax": "aten::softmax",
    "conv2d": "aten::conv2d",
    "linear": "aten::linear",
}
"""The profiler's name for a functional call of each op in PyTorch."""


def rows(
    sites: Iterable[Called], profile: Mapping[str, Any], alone: Times | None, latency: Mapping[str, float] | None = None
) -> list[Row]:
    """Return a row for each site with the times of PyTorch's own and of the kernel, alone (cold, hot) and in the model.
    `alone` is None if this batch size was not timed alone. `latency`: seconds of a whole eager pass of `torch` and of
    the `variant`, which no site can exceed on a steady host."""
    table = [_row(site, profile, alone) for site in sites]
    inside = [row.in_model for row in table if row.in_model]
    if not latency or not inside:
        return table

    def beyond(torch: float, kernel: float) -> bool:
        return torch > latency.get("torch", math.inf) or kernel > latency.get("variant", math.inf)

    together = beyond(sum(i.torch for i in inside), sum(i.kernel for i in inside))
    each = [row.in_model is not None and beyond(row.in_model.torch, row.in_model.kernel) for row in table]
    return [replace(row, exceeds=one or (together and not any(each))) for row, one in zip(table, each, strict=True)]


def _row(site: Called, profile: Mapping[str, Any], alone: Times | None) -> Row:
    row = Row(**vars(site), calls=sum(site.workloads.values()) or 1, alone=_alone(site, alone))
    if not profile:
        return row
    inside = Inside(seconds(site, profile["torch"], True), seconds(site, profile["variant"], False))
    total = profile["torch"]["total"]
    return replace(row, in_model=inside, share=inside.torch / total if total else None)


def _alone(site: Called, alone: Times | None) -> Promise:
    if alone is None:
        return Promise("this batch size was not timed alone (--alone)")
    op = site.kernel.partition("/")[0]
    plain = baseline(op)
    if site.op not in (plain.site, op):
        return Promise(f"{site.op} is no op of the library: PyTorch's own was not timed alone")
    sums = {"torch": Alone(0.0, 0.0), "kernel": Alone(0.0, 0.0)}
    for workload, count in site.workloads.items():
        for side, name in (("torch", plain.kernel), ("kernel", site.kernel)):
            one = alone.of(name, plain.workload(workload) if side == "torch" else workload)
            if not isinstance(one, Alone):
                return Promise(f"{name}: {one}")
            sums[side] = Alone(sums[side].cold + count * one.cold, sums[side].hot + count * one.hot)
    return Promise("", torch=sums["torch"], kernel=sums["kernel"])


def seconds(site: Called, profile: Mapping[str, Any], plain: bool) -> float:
    """Return a site's seconds in one pass: all of its module's own work, or, if the module does more than the site,
    that of the site's operator."""
    return sum(p["seconds"] for p in profile["parts"] if _belongs(site, p["path"], p["operator"], plain))


def _belongs(site: Called, path: str, operator: str, plain: bool) -> bool:
    if site.form == "module":
        return path == site.path
    if not plain:
        return path == site.path and operator == site.operator
    if site.form == "function":
        return path == site.path and operator == _OPERATORS.get(site.op)
    pairs = [name.split(" + ") for name in site.site.split(", ")]
    if path in {name for pair in pairs for name in pair}:
        return True
    second = site.op.partition("+")[2]
    functional = any(name.rpartition(".")[2] == second for _, name in pairs)
    return functional and path == site.path and operator == _OPERATORS.get(second)


def predicted(rows: Sequence[Row], latency: float) -> Predicted:
    """Return the predicted latency of the model."""
    if not rows:
        return Predicted("no kernel ran")

    def gain(savings: Iterable[float]) -> Gain:
        saving = sum(savings)
        left = latency - saving
        return Gain(saving, latency / left if left > 0 else None)

    alone = [(r.alone.torch, r.alone.kernel) for r in rows]
    inside = [r.in_model for r in rows if r.in_model]
    known = len(inside) == len(rows) and not any(r.exceeds for r in rows)
    in_model = gain(i.torch - i.kernel for i in inside) if known else None
    if why := next((f"{r.site}: {r.alone.why}" for r in rows if r.alone.why), ""):
        return Predicted(why, in_model=in_model)
    cold, hot = (gain(getattr(t, k) - getattr(own, k) for t, own in alone) for k in ("cold", "hot"))
    return Predicted("", cold, hot, in_model)


def alike(rows: Sequence[Row]) -> list[Row]:
    """Merge, for display, the sites of repeated layers with the same kernel and workload into one row with their sums
    (`encoder.layer.*.norm`)."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((repeated(row.site), row.kernel, *row.workloads), []).append(row)
    return [_summed(key[0], group) if len(group) > 1 else group[0] for key, group in groups.items()]


def repeated(path: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", path)


def _summed(site: str, rows: Sequence[Row]) -> Row:
    whole = replace(rows[0], site=site, calls=sum(r.calls for r in rows), exceeds=any(r.exceeds for r in rows))
    if all(r.share is not None for r in rows):
        whole = replace(whole, share=sum(r.share or 0.0 for r in rows))
    if inside := [r.in_model for r in rows if r.in_model]:
        whole = replace(whole, in_model=Inside(sum(i.torch for i in inside), sum(i.kernel for i in inside)))
    if all(r.alone.torch for r in rows):
        torch, kernel = (
            Alone(sum(getattr(r.alone, side).cold for r in rows), sum(getattr(r.alone, side).hot for r in rows))
            for side in ("torch", "kernel")
        )
        whole = replace(whole, alone=replace(rows[0].alone, torch=torch, kernel=kernel))
    return whole


def layers(profile: Mapping[str, Any]) -> list[Layer]:
    """Return every module's own time, without and with the kernels, in the order they first run."""
    sums: dict[str, dict[str, float]] = {}
    for whose, taken in profile.items():
        for part in taken["parts"]:
            own = sums.setdefault(part["path"], {})
            own[whose] = own.get(whose, 0.0) + part["seconds"]
    return [Layer(path, **own) for path, own in sums.items()]


@dataclass
class Repeated:
    """A layer, or several that differ only in their number."""

    layer: str
    modules: int
    seconds: dict[str, float]
    """Seconds by variant."""
    torch: dict[str, float]
    """Seconds of PyTorch's own in the same process, by variant."""


def by_layer(layers_of: Mapping[str, Sequence[Layer]]) -> list[Repeated]:
    """Return one row for each layer with its time in every variant, the longest first; repeated layers share a row.
    `layers_of` has the baseline first. The time of a fused pair is listed at the module that holds both."""
    paths: dict[str, set[str]] = {}
    rows: dict[str, Repeated] = {}
    for variant, own in layers_of.items():
        whose = "variant" if any(layer.variant is not None for layer in own) else "torch"
        for layer in own:
            name = repeated(layer.path) or "(the model)"
            paths.setdefault(name, set()).add(layer.path)
            row = rows.setdefault(name, Repeated(name, 0, {}, {}))
            row.seconds[variant] = row.seconds.get(variant, 0.0) + (getattr(layer, whose) or 0.0)
            row.torch[variant] = row.torch.get(variant, 0.0) + (layer.torch or 0.0)
    whole = [replace(row, modules=len(paths[name])) for name, row in rows.items()]
    return sorted(whole, key=lambda row: -max(row.seconds.values()))
