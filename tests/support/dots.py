"""A data set that a small network learns in a second: each class is a bright square in its own place, with noise."""

from dataclasses import replace

import torch

from assay.models.subject.data.datasets import DATASETS
from assay.models.subject.data.digits import Digits
from assay.models.subject.data.labelled import DataSet, Quick
from assay.models.subject.knobs import Recipe
from assay.models.subject.registry import ENTRIES

SIZES = {"train": 640, "validation": 200, "test": 300}


def split(name):
    rng = torch.Generator().manual_seed(len(name))
    labels = torch.randint(10, (SIZES[name],), generator=rng)
    images = torch.randint(0, 160, (SIZES[name], 1, 28, 28), generator=rng)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = 2 + 14 * (label // 5), 5 * (label % 5)
        image[0, row : row + 8, column : column + 5] += 70
    return Digits("dots", images.clamp(max=255).to(torch.uint8), labels, {})


def install(patch):
    """Let mnist-cnn learn them."""
    made = DataSet(
        "dots",
        (),
        10,
        "image",
        "an image of 1 × 28 × 28",
        SIZES,
        lambda n: (torch.zeros(n, 1, 28, 28),),
        lambda splits, tokens, tell: tuple(split(s) for s in splits),
        Quick(SIZES),
    )
    patch.setitem(DATASETS, "dots", made)
    patch.setitem(ENTRIES, "mnist-cnn", replace(ENTRIES["mnist-cnn"], data="dots", recipe=Recipe(epochs=3)))
