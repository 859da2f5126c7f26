"""The tables of `model infer`: every variant of a model beside PyTorch, its layers, its sites, every batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay import provenance
from assay.catalog import library
from assay.cli.model.infer_tables import shown_batch
from assay.models.studies.infer.joined import alike, by_layer
from assay.record import Record
from assay.units import NOTHING, share, si, times
from model_markdown import spread, study_of, table

_epochs: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
"""Model and kernels → seconds of an epoch, as the trainings beside the other records have it."""


def remember(records: Iterable[Record]) -> None:
    _epochs.clear()
    for record in records:
        if study_of(record) == "train" and "seconds_per_epoch" in record.evidence:
            kernels = tuple(sorted(record.evidence["config"]["swap"].items()))
            _epochs[record.kernel, kernels] = record.evidence["seconds_per_epoch"]


def infer_table(records: Sequence[Record]) -> list[str]:
    timed = [r for r in records if r.median]
    lines: list[str] = []
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in timed:
        groups.setdefault((record.kernel, record.evidence["dtype"]), []).append(record)
    for (model, number), group in groups.items():
        told = group[0].evidence
        lines.append(
            f"{model} in {number}: {told['parameter_count']:,} parameters, "
            f"{si(told['model_bytes']['torch'], 'B', 3)}, {told['weights']['from']} weights. "
            "† marks a variant with a kernel that has changed since. Each variant takes turns with torch in a process "
            "of its own; where that process had a slower host, both were slower, and the gain is against that torch.\n"
        )
        shown = {r.evidence["batch"] for r in group if "cold" in r.evidence.get("predicted", {})}
        for batch in sorted(shown or {shown_batch(group)}):
            mine = [r for r in group if r.evidence["batch"] == batch]
            lines += [
                f"### {model}, {number}, batch {batch}\n",
                *_variants(mine),
                *_layers(mine),
                *_sites(mine),
                *_unseen(mine),
                *_saved(mine),
            ]
        lines += [f"### {model}, {number}, every batch\n", *_batches(group)]
    left = {f"{r.evidence['variant']}: {r.reason}": None for r in records if not r.median and not r.evidence["arm"]}
    broken = [r for r in records if not r.median and str(r.status) == "fail"]
    failed = {f"**fail** {r.evidence['variant']}, {_arm(r)}: {r.reason.partition('. ')[0]}": None for r in broken}
    return lines + [f"- {text}" for text in (*failed, *left)] + ([""] if failed or left else [])


def _arm(record: Record) -> str:
    return f"{record.evidence['arm']} at batch {record.evidence['batch']}" if record.evidence["arm"] else "all of it"


def fastest(timed: Sequence[Record]) -> list[str]:
    """The first question: which variant is it, at each batch, and is it worth it?"""
    if not timed:
        return []
    batches = sorted({r.evidence["batch"] for r in timed})
    rows = []
    for model, number in dict.fromkeys((r.kernel, r.evidence["dtype"]) for r in timed):
        for arm in dict.fromkeys(r.evidence["arm"] for r in timed):
            cells = []
            for batch in batches:
                here = {"dtype": number, "arm": arm, "batch": batch}
                mine = [r for r in timed if r.kernel == model and here.items() <= r.evidence.items()]
                best = max(mine, key=lambda r: r.evidence.get("speedup", {"median": 1.0})["median"], default=None)
                cells.append(_winner(best) if best else NOTHING)
            rows.append([model, number, arm, *cells])
    most = max(len({r.evidence["variant"] for r in timed if r.kernel == m}) for m in {r.kernel for r in timed}) - 1
    text = (
        "The fastest variant at each batch size, and its gain over torch in the same arm; bold: its own 95 % interval "
        f"lies above 1. It is the best of up to {most} that were tried, in one run, so a gain of a few percent may be "
        "luck. ‡: weights packed to eight bits, so its outputs are not quite the same.\n"
    )
    heads = "model|dtype|arm|" + "|".join(map(str, batches))
    return ["\n".join(["## The fastest\n", text, *table(heads, rows)])]


def _winner(record: Record) -> str:
    faster = record.evidence.get("speedup")
    if not faster or faster["median"] <= 1:
        return "torch"
    name = ", ".join(record.evidence["rules"].values()) if record.evidence["variant"] == "swap" else ""
    text = f"{name or record.evidence['variant']}{'‡' * bool(record.evidence.get('packed'))} {times(faster['median'])}"
    return f"**{text}**" if faster["interval"][0] > 1 else text


PROMISED = ("cold", "hot", "in_model")


def _variants(records: Sequence[Record]) -> list[str]:
    heads = "variant|arm|:latency|:95 %|:torch beside it|:per second|:gain|:saves|:alone, cold|:alone, hot"
    heads += "|:in the model|:busy|:memory|:weights|:error|:accuracy|:epoch"
    return table(heads, [_variant(r) for r in records])


def _variant(record: Record) -> list[str]:
    e = record.evidence
    whose, promised = "variant" if e["rules"] else "torch", e.get("predicted", {})
    accuracy = (e.get("score") or {}).get("value")
    epoch = e["training"].get("seconds_per_epoch") or _epochs.get((record.kernel, tuple(sorted(e["rules"].items()))))
    return [
        e["variant"] + ("†" if stale(record) else "") + (" **fail**" if str(record.status) == "fail" else ""),
        e["arm"],
        si(record.median, "s"),
        spread(record),
        si(e["latency"]["torch"]["median"], "s") if e["rules"] else "",
        f"{e['throughput']:,.0f}",
        _gain(e.get("speedup")),
        _signed(e["saving"]["median"]) if "saving" in e else "",
        *(_signed(promised[k]["saving"]) if promised.get(k, {}).get("saving") else "" for k in PROMISED),
        share(e["busy"][whose]) if e.get("busy", {}).get(whose) else "",
        si(e["peak_bytes"][whose], "B", 3),
        si(e["model_bytes"][whose], "B", 3),
        _off(e),
        share(accuracy, 2) if accuracy is not None else "",
        si(epoch, "s", 3) if epoch else "",
    ]


def _off(told: dict) -> str:
    """The error as a share of its limit; of packed weights, how far the signal is above their noise."""
    if told.get("packed"):
        return f"{told['outputs']['compared']['sqnr']:.1f} dB"
    return share(told["outputs"]["share"])


def _gain(speedup: dict | None) -> str:
    """A gain or loss beyond doubt is bold."""
    if speedup is None:
        return ""
    low, high = speedup["interval"]
    text = f"{times(speedup['median'])} ({low:.3f}–{high:.3f})"
    return f"**{text}**" if low > 1 or high < 1 else text


def _signed(seconds: float) -> str:
    """Saved or lost."""
    return ("−" if seconds < 0 else "+") + si(abs(seconds), "s", 3)


def _layers(records: Sequence[Record]) -> list[str]:
    told = {r.evidence["variant"]: r.evidence["layers"] for r in records if r.evidence.get("layers")}
    rows = [
        [
            row["layer"] + (f" ×{row['modules']}" if row["modules"] > 1 else ""),
            *(si(row["seconds"][name], "s", 3) if row["seconds"].get(name) else "" for name in told),
        ]
        for row in by_layer(told)
    ]
    if not any(any(row[1:]) for row in rows):
        return []
    text = "Each layer's own time in one eager pass, as the profiler saw it; the longest first.\n"
    return [text, *table("layer|" + "|".join(f":{name}" for name in told), rows)]


def _sites(records: Sequence[Record]) -> list[str]:
    heads = "variant|site|kernel|workload|:calls|:alone, cold|:alone, hot|:in the model|:share"
    rows = []
    for record in records:
        for row in alike(record.evidence.get("sites") or []):
            alone, inside = row["alone"], row.get("in_model")
            kinds = [
                {side: alone[side][k] for side in ("torch", "kernel")} for k in ("cold", "hot") if "torch" in alone
            ]
            rows.append(
                [
                    record.evidence["variant"],
                    row["site"],
                    row["kernel"],
                    "; ".join(row["workloads"]),
                    str(row["calls"]),
                    *([_change(k) for k in kinds] or ["", ""]),
                    _change(inside) if inside and inside["kernel"] else "",
                    share(row["share"]) if row.get("share") is not None else "",
                ]
            )
    return ["Each site: torch's time → the kernel's, in one pass.\n", *table(heads, rows)] if rows else []


def _unseen(records: Sequence[Record]) -> list[str]:
    """A busy share of nothing is a profiler that saw nothing."""
    blind = {r.evidence["variant"]: None for r in records if r.evidence.get("busy", {}).get("variant") == 0}
    return (
        [f"In this run the profiler saw nothing of {', '.join(blind)}: no time in the model is known.\n"]
        if blind
        else []
    )


def _saved(records: Sequence[Record]) -> list[str]:
    """Bytes of packed weights, against what the format promises."""
    packed = next((r.evidence["packed"] for r in records if r.evidence.get("packed")), None)
    if packed is None:
        return []
    of = packed["weights"]
    sizes = f"{si(of['before'], 'B', 4)} → {si(of['after'], 'B', 4)}"
    return [f"Packed weights: {sizes}, {of['saved']:.2%} saved; by the format's own arithmetic {of['theory']:.2%}.\n"]


def _change(seconds: dict) -> str:
    return f"{si(seconds['torch'], 's', 3)} → {si(seconds['kernel'], 's', 3)}"


def _batches(records: Sequence[Record]) -> list[str]:
    batches = sorted({r.evidence["batch"] for r in records})
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        found.setdefault((record.evidence["variant"], record.evidence["arm"]), {})[record.evidence["batch"]] = record
    rows = []
    for (variant, arm), mine in found.items():
        cells = []
        for batch in batches:
            record = mine.get(batch)
            faster = record.evidence.get("speedup") if record else None
            cells.append(
                f"{si(record.median, 's', 3)}" + (f" {times(faster['median'])}" if faster else "")
                if record
                else NOTHING
            )
        rows.append([variant, arm, *cells])
    return table("variant|arm|" + "|".join(f":{b}" for b in batches), rows)


def stale(record: Record) -> bool:
    """Has a kernel's source changed since?"""
    kernels = {k.name: k for k in library.kernels()}
    for name, kept in (record.source.get("kernels") or {}).items():
        kernel = kernels.get(name)
        if kernel is None or provenance.source_of(kernel.file, kernel.line)["hash"] != kept:
            return True
    return False
