"""AdapTable's target correction (Kim et al., 2024): sharpen the sure, soften the unsure, track rates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ploc import links
from ploc_lab.methods.protocol import (
    Answer,
    Card,
    Floats,
    OutputMethod,
    SourceInfo,
    as_answer,
    as_rows,
    check,
    from_rows,
)

BLOCK = 512  # rows answered at once: the guesses of a longer chain take more rounds to settle


class AdapTable(OutputMethod):
    """The correction at test time, without the calibrator: uncertainty is read off the network's own softmax.

    Left out is the graph network over columns that rescales each row's logits before its uncertainty is
    read; it is trained on labelled source rows. Everything after it is here: logits whose uncertainty
    1 / (top1 - top2) is in the batch's lower quarter are multiplied by tau, those in the upper quarter are
    divided by it, and half of the answer is reweighed by the running target rates over the source's.
    A source of equal class rates has no tau (the published one is 1.5 million there): it is 1.
    """

    info = Card(
        "AdapTable, target correction only",
        needs="logits",
        changes="nothing: the outputs are rescaled and reweighed",
        at_one="every row is sharpened and makes nine tenths of the rates",
    )

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        smoothing: float = 0.1,
        low: float = 0.25,
        high: float = 0.75,
    ) -> None:
        super().__init__(model, source, smoothing=smoothing, low=low, high=high)
        if not 0 <= smoothing < 1 or not 0 <= low <= high <= 1:
            raise ValueError(
                f"need 0 <= smoothing < 1 and 0 <= low <= high <= 1, got {smoothing}, {low} and {high}"
            )
        self.smoothing = smoothing
        self.quantiles = (low, high)
        ratio = float(source.prior.max() / source.prior.min())
        self.balanced = bool(np.isclose(ratio, 1))
        self.tau = 1.0 if self.balanced else 1.5 * ratio / (ratio - 1 + 1e-6)
        self.rates = np.full(len(source.prior), 1 / len(source.prior))

    @property
    def state_size(self) -> int:
        """The running target rates."""
        return len(self.rates)

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Correct one batch."""
        return self.replay(z, batch=max(len(z), 1))

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:  # noqa: ARG002
        """Correct the stream: rates pass from batch to batch, everything else is done for many at once."""
        z = np.asarray(z, dtype=np.float64)
        check(z)
        if batch < 1:
            raise ValueError(f"batch size must be at least 1, got {batch}")
        rows = as_rows(z)
        classes = len(self.rates)
        if rows.shape[1] != classes:
            raise ValueError(f"logits of {rows.shape[1]} classes, but the source prior has {classes}")
        scores = np.empty_like(rows)
        whole = len(z) - len(z) % batch
        together = batch * max(1, BLOCK // batch)
        for start in range(0, whole, together):
            part = slice(start, min(start + together, whole))
            scores[part] = self._correct(rows[part].reshape(-1, batch, classes)).reshape(-1, classes)
        if whole < len(z):
            scores[whole:] = self._correct(rows[None, whole:])[0]
        count = -(-len(z) // batch)
        self.step(count)
        if self.balanced:
            self.skip("no temperature: the source's class rates are equal", count)
        return self.finite(from_rows(scores, z), as_answer(z))

    def _correct(self, stack: Floats) -> Floats:
        """Log-probabilities of M consecutive batches (M, B, K), which also move the rates.

        The rates that enter a batch depend on those of the batch before, a contraction. All batches are
        therefore answered at once under guessed rates, which are replaced by those that come out, until none
        changes: a chain in which every link holds is the one that walking would give.
        """
        log_p = links.log_softmax(stack)
        sharp = links.log_softmax(stack * self._temperature(np.exp(log_p)))
        log_prior = np.log(self.source.prior)
        seen = links.softmax(log_p - log_prior).mean(axis=1)
        entering = np.tile(self.rates, (len(stack), 1))
        for _ in range(len(stack) + 1):
            current = (1 - self.smoothing) * seen + self.smoothing * entering
            shifted = links.log_softmax(sharp + (np.log(current) - log_prior)[:, None, :])
            corrected: Floats = np.logaddexp(sharp, shifted) - np.log(2)
            leaving = (1 - self.smoothing) * np.exp(corrected).mean(axis=1) + self.smoothing * entering
            if np.array_equal(leaving[:-1], entering[1:]):
                break
            entering[1:] = leaving[:-1]
        self.rates = leaving[-1]
        return corrected

    def _temperature(self, p: Floats) -> Floats:
        """What each row's logits are multiplied by: tau, 1/tau or 1, (M, B, 1)."""
        top = np.sort(p, axis=2)
        uncertain = 1 / np.maximum(top[:, :, -1] - top[:, :, -2], 1e-12)
        low, high = np.quantile(uncertain, self.quantiles, axis=1)
        factor = np.where(
            uncertain <= low[:, None], self.tau, np.where(uncertain >= high[:, None], 1 / self.tau, 1.0)
        )
        scaled: Floats = factor[:, :, None]
        return scaled
