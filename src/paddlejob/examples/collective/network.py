"""A residual network with few channels, small enough for a CPU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import paddle
from paddle import nn

CHANNELS = (16, 32, 64)


class Block(nn.Layer):  # type: ignore[misc]
    """Two convolutions with a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(inputs, outputs, 3, stride=stride, padding=1, bias_attr=False),
            nn.BatchNorm2D(outputs),
            nn.ReLU(),
            nn.Conv2D(outputs, outputs, 3, padding=1, bias_attr=False),
            nn.BatchNorm2D(outputs),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(nn.Conv2D(inputs, outputs, 1, stride=stride, bias_attr=False), nn.BatchNorm2D(outputs))
        )

    def forward(self, image: Any) -> Any:
        return nn.functional.relu(self.body(image) + self.shortcut(image))


def resnet(classes: int) -> Any:
    """One block per width; each halves the image."""
    blocks: list[Any] = [Block(3, CHANNELS[0], stride=2)]
    blocks += [Block(before, after, stride=2) for before, after in pairwise(CHANNELS)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(CHANNELS[-1], classes))


def count_parameters(network: Any) -> int:
    return sum(int(paddle.numel(parameter)) for parameter in network.parameters())
