"""Data sets and published weights, fetched once and verified by hash whenever they are read; never synthesised."""

from assay.models.subject.data.asset import Asset, File, Tell, Unavailable
from assay.models.subject.data.datasets import DATASETS, dataset
from assay.models.subject.data.digits import FASHION_MNIST, MNIST, Digits
from assay.models.subject.data.fetch import ASSETS, fetch
from assay.models.subject.data.labelled import DataSet, Labelled
from assay.models.subject.data.published import MINILM
from assay.models.subject.data.reviews import IMDB

__all__ = [
    "ASSETS",
    "DATASETS",
    "FASHION_MNIST",
    "IMDB",
    "MINILM",
    "MNIST",
    "Asset",
    "DataSet",
    "Digits",
    "File",
    "Labelled",
    "Tell",
    "Unavailable",
    "dataset",
    "fetch",
]
