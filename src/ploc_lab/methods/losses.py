"""What the gradient methods minimise, on logits (N, B, K) or on the one relative logit (N, B, 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def entropy(z: Tensor) -> Tensor:
    """Shannon entropy of each row's classes in nats, (N, B).

    >>> entropy(torch.zeros(1, 1, 1)), entropy(torch.zeros(1, 1, 10))
    (tensor([[0.6931]]), tensor([[2.3026]]))
    """
    if z.shape[-1] == 1:
        return binary_entropy(z[..., 0])
    log_p = z.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def binary_entropy(z: Tensor) -> Tensor:
    """Entropy of (1 - s, s) with s = sigmoid(z), stable where s is 0 or 1."""
    return functional.softplus(z) - z * z.sigmoid()


def as_classes(z: Tensor) -> Tensor:
    """One logit a class: the relative logit z becomes [0, z], whose softmax is [1 - s, s]."""
    return torch.cat([torch.zeros_like(z), z], -1) if z.shape[-1] == 1 else z


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the marked rows of each network, (N, B) -> (N,); 0 where no row is marked."""
    return (values * mask).sum(1) / mask.sum(1).clamp(min=1)
