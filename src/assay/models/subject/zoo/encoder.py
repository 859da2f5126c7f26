"""BERT's encoder in plain torch, in any shape, with a classifier: one row of logits for each review. Published BERT
weights can be loaded.

Every part of its shape is a knob: depth, width, heads, feed-forward, and for each linear whether it exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from assay.errors import UsageError

VOCABULARY, POSITIONS = 30522, 512
EPSILON = 1e-12
SPREAD = 0.02
"""Standard deviation of the initial weights, as in BERT."""
DROPOUT = 0.1
LINEARS = ("query", "key", "value", "project", "expand", "contract")
"""Linears of a layer, in the order they are computed."""
HEAD = ("pooler.", "classifier.")
"""Prefixes of weights on top of the encoder, which published weights need not have when training starts from them."""


@dataclass(frozen=True)
class Shape:
    depth: int
    """Number of layers."""
    width: int
    heads: int
    feed_forward: int
    identity: frozenset[str] = frozenset()
    """Linears that are replaced by an identity: `layers.0.query`."""

    def __post_init__(self) -> None:
        for name in ("depth", "width", "heads", "feed_forward"):
            if getattr(self, name) < 1:
                raise UsageError(f"an encoder with {name} {getattr(self, name)}", fix="1 or more")
        if self.width % self.heads:
            raise UsageError(f"{self.heads} heads do not divide a width of {self.width}", fix="choose a divisor")
        for name in self.identity:
            match = re.fullmatch(r"layers\.(\d+)\.(\w+)", name)
            if not match or int(match[1]) >= self.depth or match[2] not in LINEARS:
                fix = f"layers.0 to layers.{self.depth - 1}, each with {', '.join(LINEARS)}"
                raise UsageError(f"the encoder has no linear {name}", fix=fix)
            if match[2] in ("expand", "contract") and self.width != self.feed_forward:
                what = f"{name} takes {self.width} to {self.feed_forward}, or back: no identity can stand for it"
                raise UsageError(what, fix="keep it linear, or make feed_forward as wide as width")

    def linear(self, name: str, inner: int, outer: int) -> nn.Module:
        return nn.Identity() if name in self.identity else nn.Linear(inner, outer)


class Layer(nn.Module):
    """Attention, then two linears with GELU in between; after each part the sum with its input is normalised."""

    def __init__(self, shape: Shape, number: int, attention: str) -> None:
        super().__init__()
        width, wide, place = shape.width, shape.feed_forward, f"layers.{number}"
        self.heads, self.attention = shape.heads, attention
        self.query = shape.linear(f"{place}.query", width, width)
        self.key = shape.linear(f"{place}.key", width, width)
        self.value = shape.linear(f"{place}.value", width, width)
        self.project = shape.linear(f"{place}.project", width, width)
        self.norm1 = nn.LayerNorm(width, EPSILON)
        self.expand = shape.linear(f"{place}.expand", width, wide)
        self.activation = nn.GELU()
        self.contract = shape.linear(f"{place}.contract", wide, width)
        self.norm2 = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.dropout(self.project(self._attend(x, inside))))
        result: torch.Tensor = self.norm2(x + self.dropout(self.contract(self.activation(self.expand(x)))))
        return result

    def _attend(self, x: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        """Compute attention. Unlike BERT it has no dropout of its weights: kernels would need random numbers for it."""
        parts = (part(x) for part in (self.query, self.key, self.value))
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        if self.attention == "sdpa":
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=inside)
        else:
            scores = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
            mixed = scores.masked_fill(~inside, torch.finfo(scores.dtype).min).softmax(-1) @ v
        return mixed.transpose(1, 2).flatten(2)


class Classifier(nn.Module):
    """The encoder, pooling to one vector for each text, and a linear to the classes.

    `pooling`: `mean`: over the text's own tokens; `first`: the first token, through a linear and tanh, as in BERT."""

    def __init__(self, shape: Shape, classes: int = 2, attention: str = "sdpa", pooling: str = "mean") -> None:
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, shape.width)
        self.position = nn.Embedding(POSITIONS, shape.width)
        self.norm = nn.LayerNorm(shape.width, EPSILON)
        self.layers = nn.ModuleList(Layer(shape, number, attention) for number in range(shape.depth))
        self.pooler = nn.Linear(shape.width, shape.width) if pooling == "first" else None
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(shape.width, classes)
        self.apply(_begin)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = input_ids.shape[1]
        x = self.dropout(self.norm(self.word(input_ids) + self.position.weight[:tokens]))
        inside = attention_mask.bool()[:, None, None, :]
        for layer in self.layers:
            x = layer(x, inside)
        logits: torch.Tensor = self.classifier(self.dropout(self._pooled(x, attention_mask)))
        return logits

    def _pooled(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.pooler is not None:
            return torch.tanh(self.pooler(x[:, 0]))
        weights = mask.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1).clamp(min=1)


def _begin(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=SPREAD)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


_PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "project",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "expand",
    "output.dense": "contract",
    "output.LayerNorm": "norm2",
}
_BERT = "embeddings.word_embeddings.weight"
_OLD = {"gamma": "weight", "beta": "bias"}
"""Names of LayerNorm's parameters in files converted from TensorFlow."""


def rename(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the tensors of published BERT files, with or without the prefix `bert.`, to this module's names, which are
    kept. The embedding of the first token type, the only one here, is added to the positions. Tensors for other tasks
    are dropped."""
    bare = {name.removeprefix("bert."): tensor for name, tensor in state.items()}
    if _BERT not in bare:
        return dict(state)
    renamed: dict[str, torch.Tensor] = {}
    for name, tensor in bare.items():
        owner, _, kind = name.rpartition(".")
        kind = _OLD.get(kind, kind)
        layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", owner)
        if layer and layer[2] in _PARTS:
            renamed[f"layers.{layer[1]}.{_PARTS[layer[2]]}.{kind}"] = tensor
        elif owner == "embeddings.LayerNorm":
            renamed[f"norm.{kind}"] = tensor
        elif owner == "pooler.dense":
            renamed[f"pooler.{kind}"] = tensor
        elif owner == "classifier":
            renamed[name] = tensor
    renamed["word.weight"] = bare[_BERT]
    position, kinds = (bare.get(f"embeddings.{name}_embeddings.weight") for name in ("position", "token_type"))
    if position is not None:
        renamed["position.weight"] = position if kinds is None else position + kinds[0]
    return renamed
