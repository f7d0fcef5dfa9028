"""EM for label shift (Saerens et al., 2002), also called MLLS; with BCTS after Alexandari et al. (2020)."""

from typing import Literal

import numpy as np
from torch import nn

from ploc import links
from ploc_lab.methods.label_shift import LabelShift
from ploc_lab.methods.protocol import Card, Floats, SourceInfo

NUDGE = 1e-4
"""The share of the source's rates in a refit's start."""


class EM(LabelShift):
    """Target class rates of greatest likelihood; posteriors reweighed by target rate over source rate.

    The source rate is the mean (calibrated) posterior of the validation rows, so that the validation set
    itself shows no shift; `rates="source"` takes `SourceInfo.prior` instead.
    """

    info = Card(
        "EM (MLLS)",
        needs="source rows",
        changes="nothing: the posteriors are reweighed",
        at_one="one row drives the rates to a vertex",
    )

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        rates: Literal["posterior", "source"] = "posterior",
        prequential: bool = False,
        bcts: bool = False,
        growth: float = 0.02,
        warmup: int = 32,
    ) -> None:
        super().__init__(
            model, source, prequential=prequential, bcts=bcts, growth=growth, warmup=warmup, rates=rates
        )
        if rates == "posterior":
            sample = source.labelled(f"{self.info.title} with rates='posterior'")
            self.prior: Floats = links.softmax(self.calibrated(sample.logits)).mean(axis=0)
        elif rates == "source":
            self.prior = source.prior / source.prior.sum()
        else:
            raise ValueError(f"rates must be 'posterior' or 'source', got {rates!r}")
        self.rates = self.prior
        self._past: list[Floats] = []

    @property
    def state_size(self) -> int:
        """The past posteriors, all but one class of each."""
        return self._count * (len(self.prior) - 1)

    def weights(self, stack: Floats, /) -> Floats:
        """Weights of each batch by itself."""
        self.step(len(stack))
        posteriors = np.moveaxis(links.softmax(stack), -1, 0)
        return maximise(posteriors, self.prior) / self.prior

    def observe(self, rows: Floats, /) -> None:
        """Keep the posteriors."""
        self._past.append(np.ascontiguousarray(links.softmax(rows).T))

    def refit(self) -> Floats:
        """Weights from all past posteriors, starting near the last rates: EM cannot leave a vertex."""
        self.step()
        self._past = [np.concatenate(self._past, axis=1)]
        start = (1 - NUDGE) * self.rates + NUDGE * self.prior
        self.rates = maximise(self._past[0][:, None, :], self.prior, start)[0]
        weights: Floats = self.rates / self.prior
        return weights


def maximise(
    posteriors: Floats, prior: Floats, start: Floats | None = None, tolerance: float = 1e-6, most: int = 100
) -> Floats:
    """Class rates (M, K) of M batches by EM, from posteriors (K, M, N) under the source rates `prior` (K,).

    The likelihood is concave, so `start` (the source rates, as published) decides the number of steps only.
    Each step starts from the original posteriors, as published; a batch is done when no rate moves by more
    than `tolerance`, or after `most` steps.

    >>> maximise(np.array([[[0.9, 0.6]], [[0.1, 0.4]]]), np.array([0.5, 0.5])).round(3)
    array([[1., 0.]])
    """
    ratio = posteriors / prior[:, None, None]
    rates = np.tile((prior if start is None else start)[:, None], (1, posteriors.shape[1]))
    live = np.arange(posteriors.shape[1])
    part, now = ratio, rates.copy()
    for _ in range(most):
        evidence = np.einsum("kmn,km->mn", part, now)
        new = now * np.einsum("kmn,mn->km", part, 1 / evidence) / part.shape[2]
        moved = np.any(np.abs(new - now) > tolerance, axis=0)
        rates[:, live] = new
        if not moved.any():
            break
        if moved.all():
            now = new
        else:
            live, now, part = live[moved], new[:, moved], part[:, moved]
    return rates.T
