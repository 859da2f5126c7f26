"""The models that Assay knows by name. Any other is the user's own, `module:function` or `path/file.py:function`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assay.errors import UsageError
from assay.models.subject import own
from assay.models.subject.data.published import MINILM
from assay.models.subject.entry import Entry
from assay.models.subject.knobs import Knob, Recipe

_DEPTHS = ("1", "2", "4", "8")
_SQUARE = ("query", "key", "value", "project")
"""Linears of a layer that can be replaced by an identity at any width."""
_BERT_KNOBS = {
    "depth": Knob(_DEPTHS, "2"),
    "width": Knob(("64", "128", "192", "256", "384", "512"), "128"),
    "heads": Knob(("1", "2", "4", "8", "16"), "2"),
    "feed_forward": Knob(("256", "512", "768", "1024", "1536", "2048"), "512"),
    **{
        f"layers.{layer}.{linear}": Knob(
            ("identity", "linear"), "linear", {"depth": tuple(d for d in _DEPTHS if int(d) > layer)}
        )
        for layer in range(int(_DEPTHS[-1]))
        for linear in _SQUARE
    },
}

ENTRIES: Mapping[str, Entry] = {
    e.name: e
    for e in (
        Entry(
            "mnist-cnn",
            "two convolutions, two linears, an activation of choice",
            "assay.models.subject.zoo.mnist_cnn",
            {"activation": ("gelu", "relu", "silu")},
            "mnist",
        ),
        Entry(
            "mnist-cnn-ln",
            "mnist-cnn with LayerNorm and GELU for its activation",
            "assay.models.subject.zoo.mnist_cnn_ln",
            data="mnist",
        ),
        Entry("resnet18", "ResNet-18, with torchvision's names of weights", "assay.models.subject.zoo.resnet18"),
        Entry(
            "minilm",
            "all-MiniLM-L6-v2, a 6-layer encoder of sentences",
            "assay.models.subject.zoo.minilm",
            {"attention": ("sdpa", "eager")},
            "sentences",
            MINILM,
        ),
        Entry(
            "bert-tiny",
            "BERT of 2 layers, 128 wide, with 2 classes on top",
            "assay.models.subject.zoo.bert_tiny",
            {"attention": ("sdpa", "eager"), "pooling": ("mean", "first")},
            "imdb",
            knobs=_BERT_KNOBS,
            recipe=Recipe(batch=32, lr=5e-4),
        ),
        Entry(
            "minilm-imdb",
            "MiniLM's encoder with 2 classes on top",
            "assay.models.subject.zoo.minilm_imdb",
            {"attention": ("sdpa", "eager")},
            "imdb",
            recipe=Recipe(epochs=3, batch=32, lr=5e-5),
            starts_from=MINILM,
        ),
    )
}


def entry(name: str) -> Entry:
    """Return the model called `name`. A user's own is not loaded until it is built."""
    if name in ENTRIES:
        return ENTRIES[name]
    if ":" in name:
        own.named(name)
        return Entry(name, "the user's own", "")
    if name.endswith(".py"):
        raise UsageError(f"{name}: which function builds the model?", fix=f"name it, e.g. {name}:build")
    raise UsageError(
        f"no model called '{name}'",
        fix=f"there are: {', '.join(ENTRIES)}; or yours: module:function, path/file.py:function",
    )


def declared(known: Entry) -> Entry:
    """Return the entry with its knobs. Those of a user's own are read from its file, which is loaded."""
    return known if known.module else replace(known, knobs=own.knobs(known.name))
