"""The small convolutional network of the vision probe, for 3 x 32 x 32 images with values in [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from ploc_lab.models.network import Network, outputs

if TYPE_CHECKING:
    from torch import Tensor

CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_STD = (0.2470, 0.2435, 0.2616)


class CNN(Network):
    """Six 3x3 convolutions with batch norm and ReLU, global average pooling: 427,178 parameters.

    x is (B, 3, 32, 32) or the same flattened to (B, 3072); the input is normalised inside, so a stream
    of raw images can be fed. The first convolution is pooled at once, which keeps the network cheap.
    """

    def __init__(self, d: int = 3072, classes: int = 10, *, width: int = 32) -> None:
        super().__init__()
        if d != 3072:
            raise ValueError(f"the CNN reads 3 x 32 x 32 = 3072 values a row, not {d}")
        w = width
        self.register_buffer("mean", torch.tensor(CIFAR_MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(CIFAR_STD).view(3, 1, 1), persistent=False)
        self.blocks = nn.Sequential(
            *_block(3, w), nn.MaxPool2d(2),
            *_block(w, 2 * w), *_block(2 * w, 2 * w), nn.MaxPool2d(2),
            *_block(2 * w, 4 * w), *_block(4 * w, 4 * w), nn.MaxPool2d(2),
            *_block(4 * w, 4 * w),
        )  # fmt: skip
        self.head = nn.Linear(4 * w, outputs(classes))

    def features(self, x: Tensor) -> Tensor:
        """The globally averaged last feature map."""
        images = (x.view(-1, 3, 32, 32) - self.get_buffer("mean")) / self.get_buffer("std")
        maps: Tensor = self.blocks(images)
        return maps.mean((2, 3))


def _block(channels: int, out: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
