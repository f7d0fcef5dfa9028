"""The benchmark's multilayer perceptron: linear and ReLU, no normalisation of any kind."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

from ploc_lab.models.network import Network, outputs

if TYPE_CHECKING:
    from torch import Tensor


class MLP(Network):
    """`depth` blocks of Linear and ReLU, then a linear head: 256 d + 66,305 parameters by default."""

    def __init__(self, d: int, classes: int = 2, *, width: int = 256, depth: int = 2) -> None:
        super().__init__()
        widths = [d] + [width] * depth
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)))
        self.head = nn.Linear(widths[-1], outputs(classes))

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer after its ReLU."""
        hidden: Tensor = self.blocks(x)
        return hidden
