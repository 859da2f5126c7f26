"""Data sets and published weights: fetched once, verified by hash whenever they are read, never made up."""

from assay.models.subject.data.asset import Asset, File, Tell, Unavailable
from assay.models.subject.data.digits import DATASETS, FASHION_MNIST, MNIST, Digits, load
from assay.models.subject.data.fetch import ASSETS, MINILM, fetch

__all__ = [
    "ASSETS",
    "DATASETS",
    "FASHION_MNIST",
    "MINILM",
    "MNIST",
    "Asset",
    "Digits",
    "File",
    "Tell",
    "Unavailable",
    "fetch",
    "load",
]
