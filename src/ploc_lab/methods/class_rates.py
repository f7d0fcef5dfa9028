"""The running class prior that FTAT and PFT3A correct their answers by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

CONFIDENT = 0.7


def tilt(log_p: Tensor, rates: Tensor, source: Tensor) -> Tensor:
    """Probabilities (S, B, 2) re-weighted by rates / source (S, 2) and normalised, as logarithms.

    >>> tilt(torch.tensor([[[0.2, 0.8]]]).log(), torch.tensor([[0.8, 0.2]]), torch.tensor([[0.5, 0.5]])).exp()
    tensor([[[0.5000, 0.5000]]])
    """
    return (log_p + (rates / source).log()[:, None]).log_softmax(-1)


def next_rates(
    p: Tensor, rates: Tensor, *, smoothing: float = 0.1, least: float = 1e-12
) -> tuple[Tensor, Tensor]:
    """The rates (S, 2) after a batch of corrected probabilities p (S, B, 2), and for whom they moved, (S,).

    Row k of A is the mean of p over the rows that are predicted k, b the mean over the confident rows (above
    0.7); the rates become softmax(rates - smoothing A^-1 b). Without both classes, a confident row and
    |det A| > least there is nothing to invert and the rates stay.
    """
    if p.shape[1] == 1:
        return rates, torch.zeros_like(rates[:, 0], dtype=torch.bool)
    predicted = (p[..., 1] > p[..., 0]).to(p.dtype)
    a1, a0 = (_mean(p, who) for who in (predicted, 1 - predicted))
    confident = (p.amax(-1) > CONFIDENT).to(p.dtype)
    b = _mean(p, confident)
    det = a0[:, 0] * a1[:, 1] - a0[:, 1] * a1[:, 0]
    valid = (
        (predicted.sum(1) > 0)
        & (predicted.sum(1) < p.shape[1])
        & (confident.sum(1) > 0)
        & (det.abs() > least)
    )
    safe = torch.where(valid, det, torch.ones_like(det))[:, None]
    v = (
        torch.stack([a1[:, 1] * b[:, 0] - a0[:, 1] * b[:, 1], a0[:, 0] * b[:, 1] - a1[:, 0] * b[:, 0]], 1)
        / safe
    )
    return torch.where(valid[:, None], (rates - smoothing * v).softmax(1), rates), valid


def _mean(p: Tensor, who: Tensor) -> Tensor:
    return (p * who[..., None]).sum(1) / who.sum(1, keepdim=True).clamp(min=1)
