"""FTAT's local consistency: whose predicted class agrees with that of the rows near it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def agrees(x: Tensor, labels: Tensor, tolerance: float = 0.3) -> Tensor:
    """Which rows keep to their neighbourhood, (S, B), for labels 0/1 (S, B) of the rows x (B, ...).

    The neighbours of a row are the rows no farther than the mean of all B^2 distances, itself among them. It
    is kept if no more than the tolerated share of them has the other label.

    >>> x = torch.tensor([[0.0], [0.1], [0.2], [0.3], [9.0]])
    >>> agrees(x, torch.tensor([[1, 1, 0, 1, 0]]))
    tensor([[ True,  True, False,  True,  True]])
    """
    if len(x) == 1:
        return torch.ones_like(labels, dtype=torch.bool)
    n = len(x)
    # Not by inner products: these are inexact for close rows, and equal rows must be at distance 0.
    distance = torch.pdist(x.flatten(1))  # of each pair once
    mean = 2 * distance.sum(dtype=torch.float64) / n**2
    pairs = torch.ones(n, n, dtype=torch.bool).triu(1)
    near = torch.zeros(n, n).masked_scatter_(pairs, (distance <= mean).float())
    one = labels.float()
    ones = one @ near + one @ near.T + one  # whole numbers, which float32 holds up to 2^24
    many = near.sum(0) + near.sum(1) + 1
    # Shares of whole numbers, so that three in ten is the tolerance exactly, for either label.
    kept: Tensor = torch.where(labels == 1, many - ones, ones).double() / many <= tolerance
    return kept
