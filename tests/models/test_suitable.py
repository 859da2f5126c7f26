"""A model is trained and judged on data that it takes; if there is none, the error says which data there is."""

from dataclasses import replace

import pytest

import dots
from assay.compress import planning
from assay.compress.curve import run
from assay.compress.planning import Prune, Quantize
from assay.compress.task import Task
from assay.errors import UsageError
from assay.models.studies.train import Options, train
from assay.models.subject.data.datasets import DATASETS

MODELS = """
    import torch
    from torch import nn

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(40000, 2)

        def forward(self, ids, mask):
            return (self.words(ids) * mask.unsqueeze(2)).sum(1)

    def features(): return nn.Sequential(nn.Linear(16, 4))
    def text(): return Text()
    def images(): return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
"""


@pytest.fixture
def mine(write, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("data was read")

    for name, data in list(DATASETS.items()):
        monkeypatch.setitem(DATASETS, name, replace(data, read=refuse))
    return write("mine.py", MODELS)


def compressed(model):
    planned = planning.quantize(model, Quantize(device="cpu"))
    return Task.of(planned.entry, "cpu")


def trained(model):
    return list(train(model, Options(device="cpu")))


@pytest.mark.parametrize("verb", [compressed, trained])
def test_if_no_data_fits_the_error_says_so_and_which_data_there_is(mine, verb):
    with pytest.raises(
        UsageError, match=r"no data set that Assay knows fits .*mine\.py:features; with mnist"
    ) as refused:
        verb(f"{mine}:features")
    assert "example" not in str(refused.value)
    assert "--data" in refused.value.fix
    assert "mnist or fashion-mnist, 10 logits for each image of 1 × 28 × 28" in refused.value.fix


@pytest.mark.parametrize("verb", [compressed, trained])
def test_if_other_data_fits_the_error_names_it(mine, verb):
    with pytest.raises(UsageError, match=r"mine\.py:text does not take mnist's images") as refused:
        verb(f"{mine}:text")
    assert refused.value.fix == "--data imdb or --data imdb-official"


def test_compress_takes_the_data_that_is_named(monkeypatch, write):
    dots.install(monkeypatch)
    file = write("mine.py", MODELS)
    options = Quantize(data="dots", widths=(8,), methods=("ptq",), epochs=0, of=("weights",), device="cpu")
    _, record = run(planning.quantize(f"{file}:images", options))
    assert record.evidence["data"] == "dots" and "--data dots" in record.replay


def test_data_of_another_kind_is_refused_for_a_model_of_the_registry():
    with pytest.raises(UsageError, match="mnist-cnn takes images and imdb has reviews"):
        planning.prune("mnist-cnn", Prune(data="imdb"))
