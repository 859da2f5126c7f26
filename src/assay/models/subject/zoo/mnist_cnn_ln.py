"""`mnist-cnn` with LayerNorm and GELU in place of its activation, so that both and their fusion have sites."""

from __future__ import annotations

import torch
from torch import nn

from assay.models.subject.zoo.mnist_cnn import example

__all__ = ["MnistCnnLn", "build", "example"]


def _norm_gelu(columns: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(columns), nn.GELU())


class MnistCnnLn(nn.Module):
    """After a convolution, LayerNorm runs over the channels of each pixel (as in ConvNeXt). Its rows are the last axis
    and contiguous, as a row kernel requires."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.norm1 = _norm_gelu(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = _norm_gelu(32)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 7 * 7, 128)
        self.norm3 = _norm_gelu(128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = _over_channels(self.norm1, self.conv1(images))
        x = self.pool(_over_channels(self.norm2, self.conv2(x)))
        x = self.norm3(self.fc1(x.flatten(1)))
        logits: torch.Tensor = self.fc2(x)
        return logits


def _over_channels(norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Apply the norm over channels: NCHW in and out, NHWC in between."""
    pixels: torch.Tensor = norm(x.permute(0, 2, 3, 1).contiguous())
    return pixels.permute(0, 3, 1, 2)


def build() -> nn.Module:
    return MnistCnnLn()
