"""What every source network has: penultimate features and one linear head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


class Network(nn.Module, ABC):
    """A classifier whose logits are `head(features(x))`: (B, 1) for two classes, else (B, K)."""

    head: nn.Linear

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """The input of the last linear layer, (B, h)."""

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a batch; for two classes the one relative logit log p1/p0."""
        logits: Tensor = self.head(self.features(x))
        return logits


def outputs(classes: int) -> int:
    """Logits that a network of this many classes has: two classes need only the relative one."""
    if classes < 2:
        raise ValueError(f"a classifier needs at least 2 classes, not {classes}")
    return 1 if classes == 2 else classes
