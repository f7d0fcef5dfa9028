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
    # Seen from a row among them, then from their middle: the mean distance is no less than the mean length,
    # so that inner products are exact enough, and equal rows are at distance 0.
    rows = x.flatten(1) - x[:1].flatten(1)
    rows = rows - rows.mean(0)
    squares = (rows**2).sum(1)
    distance = torch.addmm(squares[:, None] + squares, rows, rows.T, alpha=-2).clamp(min=0).sqrt()
    distance = distance.fill_diagonal_(0)
    near = distance.le_(distance.mean(dtype=torch.float64))
    many = near.sum(0)  # near is symmetric
    ones = labels.float() @ near  # whole numbers, which float32 holds up to 2^24
    # Shares of whole numbers, so that three in ten is the tolerance exactly, for either label.
    kept: Tensor = torch.where(labels == 1, many - ones, ones).double() / many <= tolerance
    return kept
