"""Every data set on which models are trained and scored, by name."""

from __future__ import annotations

from collections.abc import Mapping

from assay.errors import UsageError
from assay.models.subject.data import digits, reviews, tokens
from assay.models.subject.data.labelled import DataSet

DATASETS: Mapping[str, DataSet] = {
    d.name: d
    for d in (
        *digits.SETS,
        tokens.data_set(reviews.SPLIT_FILES, {"train": 19_904, "validation": 2_500, "test": 2_500}),
        tokens.data_set(reviews.ARCHIVE, {"train": 22_500, "validation": 2_500, "test": 25_000}),
    )
}


def dataset(name: str) -> DataSet:
    if name not in DATASETS:
        raise UsageError(f"no data set called '{name}'", fix=f"there are: {', '.join(DATASETS)}")
    return DATASETS[name]
