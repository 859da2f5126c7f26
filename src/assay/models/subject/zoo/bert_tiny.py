"""The smallest BERT: 2 layers, 128 wide, 2 heads; every part of its shape is a knob."""

from __future__ import annotations

from torch import nn

from assay.models.subject.zoo.encoder import HEAD, Classifier, Shape, rename
from assay.models.subject.zoo.minilm import example

__all__ = ["HEAD", "build", "example", "rename"]


def build(
    attention: str = "sdpa",
    pooling: str = "mean",
    depth: str = "2",
    width: str = "128",
    heads: str = "2",
    feed_forward: str = "512",
    **linears: str,
) -> nn.Module:
    """`linears`: kinds of single linears: {"layers.0.query": "identity"}."""
    identity = frozenset(name for name, kind in linears.items() if kind == "identity")
    shape = Shape(int(depth), int(width), int(heads), int(feed_forward), identity)
    return Classifier(shape, attention=attention, pooling=pooling)
