"""A small convolutional network for 28×28 images: two convolutions, two linears, an activation of choice between."""

from __future__ import annotations

import torch
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}


class MnistCnn(nn.Module):
    """Activations are modules, not calls: each is a site of its own, with its own time. The first convolution halves
    the image itself: pooling there would be the slowest part of a step on a CPU."""

    def __init__(self, activation: type[nn.Module]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.act1 = activation()
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.act2 = activation()
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 7 * 7, 128)
        self.act3 = activation()
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.act1(self.conv1(images))
        x = self.pool(self.act2(self.conv2(x)))
        x = self.act3(self.fc1(x.flatten(1)))
        logits: torch.Tensor = self.fc2(x)
        return logits


def build(activation: str = "gelu") -> nn.Module:
    return MnistCnn(ACTIVATIONS[activation])


def example(batch: int) -> torch.Tensor:
    """As images are once they are normalised: mean 0, variance 1."""
    return torch.randn(batch, 1, 28, 28)
