"""A kernel's time alone beside its time inside the model, and the gain that each of them promises. Pure arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.models.studies.infer.alone import Alone, Times, baseline, derived
from assay.models.studies.infer.site import Called

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
"""What PyTorch calls a functional call of an op, as the profiler sees it."""

Row = dict[str, Any]


def rows(sites: Iterable[Called], profile: Mapping[str, Any], alone: Times | None) -> list[Row]:
    """One for each site: alone (cold, hot) and in the model, PyTorch's own and the kernel. `alone` is None where this
    batch size was not timed alone."""
    return [_row(site, profile, alone) for site in sites]


def _row(site: Called, profile: Mapping[str, Any], alone: Times | None) -> Row:
    row: Row = {
        "site": site.site,
        "path": site.path,
        "op": site.op,
        "form": site.form,
        "kernel": site.kernel,
        "workloads": dict(site.workloads),
        "calls": sum(site.workloads.values()) or 1,
    }
    if profile:
        theirs, mine = seconds(site, profile["torch"], True), seconds(site, profile["variant"], False)
        row["in_model"] = {"torch": theirs, "kernel": mine}
        total = profile["torch"]["total"]
        row["share"] = theirs / total if total else None
    row["alone"] = _alone(site, alone)
    return row


def _alone(site: Called, alone: Times | None) -> Row:
    if alone is None:
        return {"why": "this batch size was not timed alone (--alone)"}
    op = site.kernel.partition("/")[0]
    theirs = baseline(op)
    if site.op not in (theirs.site, op):
        return {"why": f"{site.op} is no op of the library: PyTorch's own was not timed alone"}
    sums = {side: {"cold": 0.0, "hot": 0.0} for side in ("torch", "kernel")}
    for workload, count in site.workloads.items():
        for side, name in (("torch", theirs.kernel), ("kernel", site.kernel)):
            found = alone.of(name, theirs.workload(workload) if side == "torch" else workload)
            if not isinstance(found, Alone):
                return {"why": f"{name}: {found}"}
            sums[side]["cold"] += count * found.cold
            sums[side]["hot"] += count * found.hot
    return {**sums, "copied": derived(op)}


def seconds(site: Called, profile: Mapping[str, Any], plain: bool) -> float:
    """Of a site in one pass: all of a module's own work, or that of its operator where more than the site is in it."""
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
    second = _OPERATORS.get(site.op.partition("+")[2])
    functional = any(name.rpartition(".")[2] == site.op.partition("+")[2] for _, name in pairs)
    return functional and path == site.path and operator == second


def predicted(rows: Sequence[Row], latency: float) -> Row:
    """What the model's latency would become if every second saved at a site were saved: by the times alone, cold and
    hot, and by the times inside the model."""
    found: Row = {}
    if not rows:
        return {"why": "no kernel ran"}
    missing = next((f"{r['site']}: {r['alone']['why']}" for r in rows if "why" in r["alone"]), "")
    if missing:
        found["why"] = missing
    else:
        for kind in ("cold", "hot"):
            found[kind] = _gain(sum(r["alone"]["torch"][kind] - r["alone"]["kernel"][kind] for r in rows), latency)
    if all("in_model" in r for r in rows):
        found["in_model"] = _gain(sum(r["in_model"]["torch"] - r["in_model"]["kernel"] for r in rows), latency)
    return found


def _gain(saving: float, latency: float) -> Row:
    left = latency - saving
    return {"saving": saving, "speedup": latency / left if left > 0 else None}


def alike(rows: Sequence[Row]) -> list[Row]:
    """For a reader: sites of repeated layers, with the same kernel on the same workload, as one row with their sums
    (`encoder.layer.*.norm`)."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = _repeated(row["site"]), row["kernel"], *row["workloads"]
        groups.setdefault(key, []).append(row)
    return [_summed(key[0], found) if len(found) > 1 else found[0] for key, found in groups.items()]


def _repeated(path: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "*", path)


def _summed(site: str, rows: Sequence[Row]) -> Row:
    whole = dict(rows[0]) | {"site": site, "calls": sum(r["calls"] for r in rows)}
    if all(r.get("share") is not None for r in rows):
        whole["share"] = sum(r["share"] for r in rows)
    if all("in_model" in r for r in rows):
        whole["in_model"] = {side: sum(r["in_model"][side] for r in rows) for side in ("torch", "kernel")}
    if all("torch" in r["alone"] for r in rows):
        sums = {s: {k: sum(r["alone"][s][k] for r in rows) for k in ("cold", "hot")} for s in ("torch", "kernel")}
        whole["alone"] = dict(rows[0]["alone"]) | sums
    return whole


def layers(profile: Mapping[str, Any]) -> list[Row]:
    """Every module's own time, without and with the kernels, in the order they first run."""
    found: dict[str, Row] = {}
    for whose, told in profile.items():
        for part in told["parts"]:
            row = found.setdefault(part["path"], {"path": part["path"]})
            row[whose] = row.get(whose, 0.0) + part["seconds"]
    return list(found.values())


def by_layer(layers_of: Mapping[str, Sequence[Row]]) -> list[Row]:
    """From each variant's layers, the baseline's first, to one row for each layer with its time in every variant, the
    longest first; repeated ones are one row. What a fused pair takes stands at the module that holds both."""
    found: dict[str, Row] = {}
    for variant, told in layers_of.items():
        whose = "variant" if any("variant" in row for row in told) else "torch"
        for row in told:
            path = _repeated(row["path"]) or "(the model)"
            layer = found.setdefault(path, {"layer": path, "modules": set(), "seconds": {}})
            layer["modules"].add(row["path"])
            layer["seconds"][variant] = layer["seconds"].get(variant, 0.0) + row.get(whose, 0.0)
    whole = [row | {"modules": len(row["modules"])} for row in found.values()]
    return sorted(whole, key=lambda row: -max(row["seconds"].values()))
