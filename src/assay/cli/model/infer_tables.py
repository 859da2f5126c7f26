"""How `assay model infer` prints: the variants at one batch size, all batch sizes, and every site."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from assay.cli.fitted import fitted
from assay.cli.screen import MARKS
from assay.units import count, si

if TYPE_CHECKING:
    from rich.table import Table

    from assay.record import Record

_HIDDEN = 0.6
"""A GPU that is busy for less of an eager pass than this waits for the host, and hides what kernels save."""


_STEADY = 1.25
"""Torch by itself and beside a variant, two processes, may differ by this factor without a word."""


def show(records: Sequence[Record], terminal: Any) -> None:
    """For each model and format: variants at the largest batch, latency over batches, sites, and what was left out."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.kernel, record.evidence["dtype"]), []).append(record)
    for (model, number), group in groups.items():
        timed = [r for r in group if r.median]
        if timed:
            batch = shown_batch(timed)
            mine = [r for r in timed if r.evidence["batch"] == batch]
            title = f"{model}  {number}, batch {batch}  ({_where(mine[0])})"
            terminal.print(*fitted(_variants(title, mine), terminal.width, keep=2))
            for line in _notes(mine):
                terminal.print(line, style="dim", markup=False)
            if len({r.evidence["batch"] for r in timed}) > 1:
                table = _over_batches(f"{model}  {number}, latency by batch", timed)
                terminal.print(*fitted(table, terminal.width, keep=2))
            if any(r.evidence.get("layers") for r in mine):
                terminal.print(*fitted(_layers(f"{model}  {number}, batch {batch}, by layer", mine), terminal.width, 2))
            for record in (r for r in mine if r.evidence.get("sites")):
                terminal.print(*fitted(_sites(record), terminal.width, keep=1))
                for line in _beside(record):
                    terminal.print(line, style="dim", markup=False)
        for line in left_out(group):
            terminal.print(line, style="dim", markup=False)


def shown_batch(timed: Sequence[Record]) -> int:
    """The largest batch at which kernels were timed alone, too; else the largest that most variants were run at."""
    both = [r for r in timed if "cold" in r.evidence.get("predicted", {})]
    ran = Counter(r.evidence["batch"] for r in both or timed)
    return int(max(batch for batch, count in ran.items() if count == max(ran.values())))


def _where(record: Record) -> str:
    told = record.evidence
    place = count(told["threads"], "thread") if told.get("threads") else record.provenance.get("gpu") or ""
    size = told["model_bytes"]["torch"]
    return (
        f"{place}; {told['weights']['from']} weights, {count(told['parameter_count'], 'parameter')}, {si(size, 'B', 3)}"
    )


def _new(title: str, columns: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, collapse_padding=True
    )
    for name, side in columns:
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    return table


# The variants


def _variants(title: str, records: Sequence[Record]) -> Table:
    told = [r.evidence for r in records]
    some = {
        "busy": any("busy" in e for e in told),
        "accuracy": any(e.get("score") for e in told),
        "epoch": any("seconds_per_epoch" in e["training"] for e in told),
    }
    heads = [
        ("variant", "left"),
        ("arm", "left"),
        ("latency", "right"),
        ("±", "right"),
        ("per s", "right"),
        ("gain", "right"),
        ("saves", "right"),
        ("alone,\ncold", "right"),
        ("alone,\nhot", "right"),
        ("in the\nmodel", "right"),
        ("memory", "right"),
        ("error", "right"),
    ]
    table = _new(title, [*heads, *((name, "right") for name, there in some.items() if there)])
    before = ""
    for record in records:
        e = record.evidence
        if before and e["variant"] != before:
            table.add_section()
        table.add_row(*_variant(record, e["variant"] if e["variant"] != before else "", some))
        before = e["variant"]
    return table


def _variant(record: Record, name: str, some: dict[str, bool]) -> list[str]:
    e = record.evidence
    assert record.median is not None and record.interval is not None
    whose = "variant" if e["rules"] else "torch"
    promised = e.get("predicted", {})
    cells = [
        ("[red]✗[/] " if str(record.status) == "fail" else "") + name,
        e["arm"],
        si(record.median, "s", 3),
        f"{(record.interval[1] - record.interval[0]) / 2 / record.median:.1%}",
        f"{e['throughput']:,.0f}",
        gain(e.get("speedup")),
        saving(e.get("saving")),
        *(_plain(promised.get(kind)) for kind in ("cold", "hot", "in_model")),
        si(e["peak_bytes"][whose], "B", 3),
        _error(e),
    ]
    if some["busy"]:
        cells.append(f"{e['busy'][whose]:.0%}" if "busy" in e else "")
    if some["accuracy"]:
        cells.append(f"{e['score']['value']:.2%}" if "value" in (e.get("score") or {}) else "")
    if some["epoch"]:
        cells.append(si(e["training"].get("seconds_per_epoch"), "s", 3))
    return cells


def _error(told: dict[str, Any]) -> str:
    """As a share of the limit; of packed weights, how far the signal is above the noise."""
    if told.get("packed"):
        noise = told["outputs"]["compared"]["sqnr"]
        return f"{noise:.1f} dB" if noise else "none"
    error = told["outputs"]["share"]
    return f"{error:.0%}" if error < 10 else f"[red]{error:.3g}×[/]"


def gain(speedup: dict[str, Any] | None) -> str:
    """Green where it is faster beyond doubt, red where it is slower beyond doubt, ~ where it cannot be told."""
    if speedup is None:
        return ""
    low, high = speedup["interval"]
    text = f"{speedup['median']:.3f}×"
    return f"[green]{text}[/]" if low > 1 else f"[red]{text}[/]" if high < 1 else f"~{text}"


def saving(saved: dict[str, Any] | None) -> str:
    if saved is None:
        return ""
    low, high = saved["interval"]
    text = _signed(saved["median"])
    return f"[green]{text}[/]" if low > 0 else f"[red]{text}[/]" if high < 0 else f"~{text}"


def _plain(promised: dict[str, Any] | None) -> str:
    return "" if promised is None else _signed(promised["saving"])


def _signed(seconds: float) -> str:
    """`+12.3 µs` saved, `−4.5 µs` lost."""
    return ("−" if seconds < 0 else "+") + si(abs(seconds), "s", 3)


def _notes(records: Sequence[Record]) -> list[str]:
    """How to read it, once, and what the figures themselves suggest."""
    found = []
    if any("predicted" in r.evidence for r in records):
        found.append(
            "gain, saves: against torch in the same arm, round by round. alone: what the kernels' own times promise. "
            "in the model: what their time there says"
        )
    found += _slower_host(records)
    idle = [r for r in records if r.evidence["arm"] == "eager" and r.evidence.get("busy", {}).get("torch", 1) < _HIDDEN]
    if idle:
        share = idle[0].evidence["busy"]["torch"]
        found.append(
            f"eager torch keeps the GPU busy {share:.0%} of a pass: the rest is launching, and hides what kernels save"
        )
    return found


def _slower_host(records: Sequence[Record]) -> list[str]:
    """Where latencies of two processes contradict a gain that was taken inside one of them."""
    alone = {r.evidence["arm"]: r.median for r in records if not r.evidence["rules"]}
    beside = [
        (r.evidence["latency"]["torch"]["median"] / own, r) for r in records if (own := alone.get(r.evidence["arm"]))
    ]
    factor, record = max(beside, default=(1.0, None), key=lambda found: abs(math.log(found[0])))
    if record is None or 1 / _STEADY < factor < _STEADY:
        return []
    variant, arm = record.evidence["variant"], record.evidence["arm"]
    took = si(record.evidence["latency"]["torch"]["median"], "s", 3)
    return [
        f"the host was not steady: torch, {arm}, took {took} beside {variant} and {si(alone[arm], 's', 3)} by itself. "
        "Compare gains, not latencies of two variants"
    ]


# Over batches


def _over_batches(title: str, timed: Sequence[Record]) -> Table:
    batches = sorted({r.evidence["batch"] for r in timed})
    table = _new(title, [("variant", "left"), ("arm", "left"), *((str(b), "right") for b in batches)])
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in timed:
        found.setdefault((record.evidence["variant"], record.evidence["arm"]), {})[record.evidence["batch"]] = record
    before = ""
    for (variant, arm), mine in found.items():
        if before and variant != before:
            table.add_section()
        cells = [_cell(mine[b]) if b in mine else "" for b in batches]
        table.add_row(variant if variant != before else "", arm, *cells)
        before = variant
    return table


def _cell(record: Record) -> str:
    faster = gain(record.evidence.get("speedup"))
    return f"{si(record.median, 's', 3)}" + (f" {faster}" if faster else "")


# Layers

_LONGEST = 12
"""Layers shown by themselves."""


def _layers(title: str, records: Sequence[Record]) -> Table:
    """Where a pass spends its time, and how that changes: the profiler's figures, of the eager form."""
    from assay.models.studies.infer.joined import by_layer

    told = {r.evidence["variant"]: r.evidence["layers"] for r in records if r.evidence.get("layers")}
    found = by_layer(told)
    whole = {name: sum(row["seconds"].get(name, 0.0) for row in found) for name in told}
    first = next(iter(told))
    table = _new(title, [("layer", "left"), ("share", "right"), *((name, "right") for name in told)])
    for row in found[:_LONGEST]:
        times = f" ×{row['modules']}" if row["modules"] > 1 else ""
        share = row["seconds"].get(first, 0.0) / whole[first] if whole[first] else 0.0
        table.add_row(row["layer"] + times, f"{share:.0%}", *(si(row["seconds"].get(n) or None, "s", 3) for n in told))
    rest = {name: sum(row["seconds"].get(name, 0.0) for row in found[_LONGEST:]) for name in told}
    if found[_LONGEST:]:
        share = rest[first] / whole[first] if whole[first] else 0.0
        table.add_row(f"{len(found) - _LONGEST} others", f"{share:.0%}", *(si(rest[n], "s", 3) for n in told))
    return table


# Sites


def _sites(record: Record) -> Table:
    from rich.table import Column

    from assay.models.studies.infer.joined import alike

    e = record.evidence
    kernels = ", ".join(dict.fromkeys(row["kernel"] for row in e["sites"]))
    title = f"{e['variant']}, batch {e['batch']}: {kernels}"
    table = _new(
        title,
        [
            ("site", "left"),
            ("calls", "right"),
            ("alone, cold", "right"),
            ("alone, hot", "right"),
            ("in the model", "right"),
            ("share", "right"),
        ],
    )
    table.columns.append(Column("workload", overflow="fold", min_width=16, _index=len(table.columns)))
    for row in alike(e["sites"]):
        alone, inside = row["alone"], row.get("in_model")
        table.add_row(
            row["site"],
            str(row["calls"]),
            *(change(alone["torch"][k], alone["kernel"][k]) if "torch" in alone else "" for k in ("cold", "hot")),
            change(inside["torch"], inside["kernel"]) if inside else "",
            f"{row['share']:.0%}" if row.get("share") is not None else "",
            "; ".join(_shape(text) for text in row["workloads"]),
        )
    return table


def change(torch: float, kernel: float) -> str:
    """`12.3 → 8.10 µs`: PyTorch's time, then the kernel's, in one unit; green or red by which is less."""
    exponent = max(-9, 3 * ((len(f"{max(torch, kernel) * 1e9:.0f}") - 1) // 3) - 9)
    unit = {-9: "ns", -6: "µs", -3: "ms"}.get(exponent, "s")
    scale = 10.0**exponent if unit != "s" else 1.0
    colour = "green" if kernel < torch else "red"
    theirs, mine = (f"{seconds / scale:#.3g}".rstrip(".") for seconds in (torch, kernel))
    return f"{theirs} → [{colour}]{mine}[/] {unit}"


def _shape(workload: str) -> str:
    return " ".join(part for part in workload.split(",") if not part.startswith("dtype="))


def _beyond(cost: dict[str, float]) -> str:
    """What each way costs more than the kernel called directly; the oldest records have fewer."""
    ways = {"site": "", "operator": " through torch.library", "training": " recorded for a gradient"}
    told = [f"{_signed(cost[k] - cost['direct'])}{text}" for k, text in ways.items() if k in cost]
    return ", ".join(told) + (f", which takes {si(cost['gradient'], 's', 3)}" if cost.get("gradient") else "")


def _beside(record: Record) -> list[str]:
    """What the sites' table leaves out: why there is no promise, what a call costs, what was left as it is."""
    e = record.evidence
    found = []
    if why := e.get("predicted", {}).get("why"):
        found.append(f"no promise: {why}")
    if why := e.get("unprofiled"):
        found.append(f"no time in the model: {why}")
    if any(row["alone"].get("copied") for row in e["sites"]):
        ops = dict.fromkeys(r["kernel"].partition("/")[0] for r in e["sites"] if r["alone"].get("copied"))
        found.append(f"PyTorch's {', '.join(ops)} has no out=: alone, its time holds a copy that no model makes")
    costs = {k: c for k, c in (e.get("boundary") or {}).items() if isinstance(c, dict) and "site" in c}
    calls = Counter[str]()
    for row in e["sites"]:
        calls[row["kernel"]] += row["calls"]
    if costs:
        whole = _signed(sum((c["site"] - c["direct"]) * calls[k] for k, c in costs.items()))
        told = "; ".join(f"{k} {_beyond(c)}" for k, c in costs.items())
        found.append(f"what a swapped call costs beyond the kernel's own, {whole} a pass: {told}")
    if packed := e.get("packed"):
        of = packed["weights"]
        sizes = f"{si(of['before'], 'B', 3)} → {si(of['after'], 'B', 3)}"
        found.append(f"packed weights: {sizes}, {of['saved']:.2%} saved; in theory {of['theory']:.2%}")
    left = Counter(s["op"] for s in e.get("swap", []) if s["state"] == "left")
    if left:
        found.append("left as they are: " + ", ".join(f"{op} ×{n}" for op, n in left.items()))
    profile = e.get("profile", {}).get("variant", {})
    if profile.get("unattributed") and profile["total"]:
        found.append(f"{profile['unattributed'] / profile['total']:.1%} of the kernels' time belongs to no module")
    return found


def left_out(records: Sequence[Record]) -> list[str]:
    """Skipped variants, arms and batches, each reason once; interpreted ones with their verdict."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        e = record.evidence
        if str(record.status) == "skipped":
            where = f"{e['arm']} {e['batch']}" if e["arm"] else ""
            found.setdefault((e["variant"], record.reason), []).append(where)
    lines = [f"– {variant}{_at(where)}: {reason}" for (variant, reason), where in found.items()]
    for record in records:
        if str(record.status) in ("pass", "inconclusive") and not record.median:
            mark, _ = MARKS[str(record.status)]
            lines.append(f"{mark} {record.evidence['variant']} at batch {record.evidence['batch']}: {record.reason}")
    return lines


def _at(where: list[str]) -> str:
    """`, eager 1, 16` of `eager 1` and `eager 16`."""
    arms: dict[str, list[str]] = {}
    for text in filter(None, where):
        arm, _, batch = text.partition(" ")
        arms.setdefault(arm, []).append(batch)
    return "".join(f", {arm} {', '.join(batches)}" for arm, batches in arms.items())
