"""ResNet-18 in plain torch, with the names of torchvision's state dict, so that torchvision's weights load."""

from __future__ import annotations

import torch
from torch import nn


def _conv(inner: int, outer: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with a shortcut, which is a 1×1 convolution if the shape changes."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inner, outer, 3, stride)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv(outer, outer, 3)
        self.bn2 = nn.BatchNorm2d(outer)
        changes = stride != 1 or inner != outer
        self.downsample = nn.Sequential(_conv(inner, outer, 1, stride), nn.BatchNorm2d(outer)) if changes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        result: torch.Tensor = self.relu(x + beside)
        return result


def _layer(inner: int, outer: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(inner, outer, stride), BasicBlock(outer, outer, 1))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = _conv(3, 64, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _layer(64, 64, 1)
        self.layer2 = _layer(64, 128, 2)
        self.layer3 = _layer(128, 256, 2)
        self.layer4 = _layer(256, 512, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: torch.Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


def build() -> nn.Module:
    return ResNet18()


def example(batch: int) -> torch.Tensor:
    return torch.randn(batch, 3, 224, 224)
