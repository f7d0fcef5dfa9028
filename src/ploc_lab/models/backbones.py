"""The networks by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ploc_lab.models.cnn import CNN
from ploc_lab.models.ft_transformer import FTTransformer
from ploc_lab.models.mlp import MLP
from ploc_lab.models.tab_transformer import TabTransformer

if TYPE_CHECKING:
    from ploc_lab.models.network import Network

BACKBONES: dict[str, type[Network]] = {
    "mlp": MLP,
    "ft_transformer": FTTransformer,
    "tab_transformer": TabTransformer,
    "cnn": CNN,
}


def build(backbone: str, d: int, classes: int = 2, **options: Any) -> Network:
    """A fresh network for d columns; two classes get one logit, K classes K.

    >>> net = build("mlp", 38)
    >>> sum(p.numel() for p in net.parameters())
    76033
    """
    if backbone not in BACKBONES:
        raise ValueError(f"no backbone {backbone!r}; there are {', '.join(BACKBONES)}")
    return BACKBONES[backbone](d, classes, **options)
