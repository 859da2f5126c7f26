"""MiniLM's encoder with a head that tells reviews for from reviews against."""

from __future__ import annotations

from torch import nn

from assay.models.subject.zoo.encoder import HEAD, Classifier, Shape, rename
from assay.models.subject.zoo.minilm import CONFIG, example

__all__ = ["HEAD", "build", "example", "rename"]


def build(attention: str = "sdpa") -> nn.Module:
    sizes = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    return Classifier(Shape(*(CONFIG[name] for name in sizes)), attention=attention)
