"""Tests that a model learns with Assay's kernels, forward and backward, as it learns with PyTorch's.

    python tools/train_envelope.py results/h200/models/training.json [--items 2048] [--epochs 5] [--jobs 5]

Five seeds with PyTorch make an envelope of loss curves. The first of them is run again to show how far apart two runs
of one seed are on this device. With kernels swapped in, that seed's curve must stay inside, and the accuracy must be as
good. With --jobs several trainings run in parallel: the curves are the same, but times are meaningless and not kept.
`--again` judges the curves of an existing document without training."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from assay import host
from assay.models.studies.train import Options, train
from assay.record import Record, Status, document, read

MODEL, SEEDS, CLOSE = "mnist-cnn-ln", 5, 0.002
"""The model, the number of seeds, and how far below PyTorch's worst accuracy a run may be."""
GRAZE = 0.01
"""Fraction of the envelope's width by which a curve may leave it: where the seed itself is the edge, rounding alone
carries a curve across it."""

TIMES = ("seconds_per_epoch", "cpu_seconds")


def arms(device: str) -> dict[str, dict[str, str]]:
    """Return the rules of each arm: norms and activations, each with its own backward kernel, and their fusion."""
    if device == "cpu":
        return {"njit": {"layernorm": "layernorm/njit", "gelu": "gelu/njit"}}
    return {
        "triton": {"layernorm": "layernorm/triton", "gelu": "gelu/triton"},
        "cuda": {"layernorm": "layernorm/cuda", "gelu": "gelu/cuda"},
        "fused, triton": {"layernorm+gelu": "ln_gelu/triton"},
        "fused, cuda": {"layernorm+gelu": "ln_gelu/cuda"},
    }


def run(seed: int, swap: dict[str, str], settings: dict[str, int], alone: bool) -> Record:
    with tempfile.TemporaryDirectory() as name:
        where = {"checkpoint": Path(name, "checkpoint.safetensors"), "weights": Path(name, "weights.safetensors")}
        (record,) = train(MODEL, Options(seed=seed, swap=swap, **settings, **where))  # type: ignore[arg-type]
    kept = {k: v for k, v in record.evidence.items() if k != "weights" and (alone or k not in TIMES)}
    return replace(record, evidence=kept)


def losses(record: Record) -> list[float]:
    return [loss for _, loss in record.evidence["curve"]]


def judged(record: Record, plain: list[Record], again: Record) -> Record:
    """Return the record with its curve's place in the envelope. It fails if the curve leaves the envelope by more than
    two runs of one seed differ, or if its accuracy is too low."""
    curves = [losses(r) for r in plain]
    apart = max(abs(a - b) for a, b in zip(curves[0], losses(again), strict=True))
    low, high = ([f(at) for at in zip(*curves, strict=True)] for f in (min, max))
    points = list(zip(low, losses(record), high, strict=True))
    outside = max(max(lo - at, at - hi, 0.0) - GRAZE * (hi - lo) for lo, at, hi in points)
    accuracies = [r.evidence["test"]["value"] for r in plain]
    lost = max(accuracies) - record.evidence["test"]["value"]
    inside, close = outside <= apart, min(accuracies) - CLOSE <= record.evidence["test"]["value"]
    envelope = {
        "seeds": len(plain),
        "low": low,
        "high": high,
        "outside": outside,
        "same_seed_apart": apart,
        "accuracies": accuracies,
        "below_best": lost,
        "close": CLOSE,
    }
    beyond = sum(not lo <= at <= hi for lo, at, hi in points)
    reason = (
        f"{record.reason.partition(';')[0]}; it leaves the envelope of {len(plain)} PyTorch seeds at {beyond} of "
        f"{len(points)} points, by {max(outside, 0.0):.2g} at most; two runs of one seed lie {apart:.2g} apart"
    )
    status = Status.PASS if inside and close else Status.FAIL
    return replace(record, status=status, reason=reason, evidence=record.evidence | {"envelope": envelope})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    if asked.again:
        kept = read(asked.out)
        plain, again, swapped = kept[:SEEDS], kept[SEEDS], kept[SEEDS + 1 :]
        return write(asked.out, plain, again, [judged(r, plain, again) for r in swapped])
    settings = {"items": asked.items, "epochs": asked.epochs, "patience": asked.epochs}
    swaps = arms("cuda" if host.runs_on_gpu() else "cpu")
    records: list[Record] = []
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        begun = [
            pool.submit(run, seed, swap, settings, asked.jobs == 1)
            for seed, swap in [*((seed, {}) for seed in (*range(SEEDS), 0)), *((0, swap) for swap in swaps.values())]
        ]
        plain, again = [one.result() for one in begun[:SEEDS]], begun[SEEDS].result()
        for label, one in zip(swaps, begun[SEEDS + 1 :], strict=True):
            record = judged(one.result(), plain, again)
            print(f"{label:14} {record.status}  {record.reason}", flush=True)
            records.append(record)
    return write(asked.out, plain, again, records)


def write(out: Path, plain: list[Record], again: Record, records: list[Record]) -> int:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document([*plain, again, *records], verb="model"), indent=1, default=str) + "\n")
    return int(any(r.status is Status.FAIL for r in records))


if __name__ == "__main__":
    sys.exit(main())
