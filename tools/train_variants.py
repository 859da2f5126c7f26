"""Times an epoch of training with each variant's kernels, for the column `epoch` of infer's table.

    python tools/train_variants.py results/h200/models/epochs.json mnist-cnn mnist-cnn-ln [--items 2048]

Each variant trains one epoch after a short one that compiles, all in turn in one process. Records also go to the store,
where `assay model infer` looks for trainings of a variant."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from assay import host
from assay.errors import AssayError
from assay.models.studies.infer import Options as Inference
from assay.models.studies.infer import plan
from assay.models.studies.train import Options, train
from assay.record import Record, document
from assay.store import open_store

WARM = 2048
"""Number of images of the epoch that compiles."""


def trainings(model: str, items: int, folder: Path) -> Iterator[Record]:
    device = "cuda" if host.runs_on_gpu() else "cpu"
    files = {"checkpoint": folder / "checkpoint.safetensors", "weights": folder / "weights.safetensors"}
    for variant in plan(model, Inference(device=device, batches=(1,))).variants:
        if variant.cannot or variant.interpreted:
            print(f"{model:14} {variant.name:16} left out: {variant.cannot or 'interpreted'}", flush=True)
            continue
        try:
            for some in (WARM, items):
                settings = Options(epochs=1, swap=variant.rules, items=some, device=device, **files)
                (record,) = train(model, settings)
        except AssayError as problem:
            print(f"{model:14} {variant.name:16} {problem}", flush=True)
            continue
        took = record.evidence.get("seconds_per_epoch")
        print(f"{model:14} {variant.name:16} {record.status}  {took or 0:.3f} s  {record.reason}", flush=True)
        yield replace(record, evidence={k: v for k, v in record.evidence.items() if k != "weights"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--items", type=int, default=0)
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder, open_store() as store:
        for model in asked.models:
            for record in trainings(model, asked.items, Path(folder)):
                store.add(record)
                records.append(record)
                # Written after each record, so that an interruption keeps what was done.
                asked.out.write_text(json.dumps(document(records, verb="model"), indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
