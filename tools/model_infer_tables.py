"""The part of docs/model-results.md on `model infer`: the fastest variant, then all tables of each model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.models.studies.train.evidence import TrainEvidence
from assay.record import Record, Status
from assay.report import infer_tables as drawn
from assay.report.infer_tables import One
from assay.report.table import Column, Table, to_markdown
from assay.units import NOTHING, si, times


def epochs(trainings: Iterable[Record]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return seconds per epoch by model and kernels."""
    evidence = [(record.kernel, TrainEvidence.of(record)) for record in trainings]
    return {
        (model, tuple(sorted(e.config.swap.items()))): e.seconds_per_epoch
        for model, e in evidence
        if e.seconds_per_epoch
    }


def infer_table(records: Sequence[Record], trainings: Iterable[Record]) -> list[str]:
    known = epochs(trainings)
    ones = drawn.read(records)
    lines: list[str] = []
    for (model, number), group in drawn.by_model(one for one in ones if one.record.median).items():
        first = group[0].evidence
        lines.append(
            f"{model} in {number}: {first.parameter_count:,} parameters, "
            f"{si((first.model_bytes or {}).get('torch'), 'B', 3)}, {(first.weights or {}).get('from')} weights. "
            "† marks a variant with a kernel that has changed since. Each variant takes turns with torch in a process "
            "of its own; where that process had a slower host, both were slower, and the gain is against that torch.\n"
        )
        promised = {one.evidence.batch for one in group if one.evidence.predicted and one.evidence.predicted.cold}
        for batch in sorted(promised or {drawn.shown_batch(group)}):
            here = [one for one in group if one.evidence.batch == batch]
            lines += [
                f"### {model}, {number}, batch {batch}\n",
                *to_markdown(drawn.variants(here, epochs=known)),
                *_layers(here),
                *_sites(here),
                *_unseen(here),
                *_saved(here),
            ]
        lines += [f"### {model}, {number}, every batch\n", *to_markdown(drawn.over_batches(group))]
    untimed = [one for one in ones if not one.record.median]
    left = {f"{one.evidence.variant}: {one.record.reason}": None for one in untimed if not one.evidence.arm}
    failed = {_failure(one): None for one in untimed if one.record.status is Status.FAIL}
    return lines + [f"- {text}" for text in (*failed, *left)] + ([""] if failed or left else [])


def _failure(one: One) -> str:
    evidence = one.evidence
    where = f"{evidence.arm} at batch {evidence.batch}" if evidence.arm else "all of it"
    return f"**fail** {evidence.variant}, {where}: {one.record.reason.partition('. ')[0]}"


def fastest(records: Sequence[Record]) -> list[str]:
    """Return the table of the fastest variant at each batch size, with its gain."""
    timed = [one for one in drawn.read(records) if one.record.median]
    if not timed:
        return []
    arms = dict.fromkeys(one.evidence.arm for one in timed)
    rows = [(*of, arm) for of in drawn.by_model(timed) for arm in arms]

    def winner(batch: int) -> Column[tuple[str, str, str]]:
        def cell(row: tuple[str, str, str]) -> str:
            here = [o for o in timed if (o.record.kernel, o.evidence.dtype, o.evidence.arm) == row]
            best = max((o for o in here if o.evidence.batch == batch), key=_faster, default=None)
            return _winner(best) if best else NOTHING

        return Column(str(batch), cell, left=True)

    named = [Column(n, lambda row, i=i: row[i], left=True) for i, n in enumerate(("model", "dtype", "arm"))]
    columns = [*named, *(winner(batch) for batch in sorted({one.evidence.batch for one in timed}))]
    tried = max(len({o.evidence.variant for o in timed if o.record.kernel == m}) for m in {r[0] for r in rows}) - 1
    text = (
        "The fastest variant at each batch size, and its gain over torch in the same arm; bold: its own 95 % interval "
        f"lies above 1. It is the best of up to {tried} that were tried, in one run, so a gain of a few percent may be "
        "luck. ‡: weights packed to eight bits, so its outputs are not quite the same.\n"
    )
    return ["\n".join(["## The fastest\n", text, *to_markdown(Table("", columns, rows))])]


def _faster(one: One) -> float:
    return one.evidence.speedup.median if one.evidence.speedup else 1.0


def _winner(one: One) -> str:
    evidence, faster = one.evidence, one.evidence.speedup
    if not faster or faster.median <= 1:
        return "torch"
    name = ", ".join(evidence.rules.values()) if evidence.variant == "swap" else evidence.variant
    text = f"{name}{'‡' * bool(evidence.packed)} {times(faster.median)}"
    return f"**{text}**" if faster.interval[0] > 1 else text


def _layers(ones: Sequence[One]) -> list[str]:
    table = drawn.layers(ones)
    if not any(any(row.seconds.values()) for row in table.rows):
        return []
    text = "Each layer's own time in one eager pass, as the profiler saw it; the longest first."
    if any(one.evidence.rules for one in ones):
        text += " PyTorch's time → the variant's, both in the process of the variant."
    text += "\n"
    return [text, *to_markdown(table)]


def _sites(ones: Sequence[One]) -> list[str]:
    table = drawn.sites(ones)
    return ["Each site: torch's time → the kernel's, in one pass.\n", *to_markdown(table)] if table.rows else []


def _unseen(ones: Sequence[One]) -> list[str]:
    """Return a note on variants with a busy share of 0, for which the profiler saw nothing."""
    blind = {one.evidence.variant: None for one in ones if (one.evidence.busy or {}).get("variant") == 0}
    text = f"In this run the profiler saw nothing of {', '.join(blind)}: no time in the model is known.\n"
    return [text] if blind else []


def _saved(ones: Sequence[One]) -> list[str]:
    """Return a line on the bytes of packed weights, compared with theory."""
    of = next((one.evidence.packed.weights for one in ones if one.evidence.packed), None)
    if of is None:
        return []
    sizes = f"{si(of.before, 'B', 4)} → {si(of.after, 'B', 4)}"
    return [f"Packed weights: {sizes}, {of.saved:.2%} saved; by the format's own arithmetic {of.theory:.2%}.\n"]
