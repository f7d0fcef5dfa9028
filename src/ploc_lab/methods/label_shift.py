"""What the label-shift estimators share: weights p(y) target / p(y) source, from a batch or from the past."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ploc import links
from ploc_lab.methods import temperature
from ploc_lab.methods.protocol import (
    Answer,
    Floats,
    OutputMethod,
    SourceInfo,
    as_answer,
    as_rows,
    check,
    from_rows,
)

LOG_ZERO = math.log(5e-324)  # a class of weight zero scores as the smallest double: finite, and all rows tie


class LabelShift(OutputMethod):
    """Reweigh the source's posteriors by estimated class weights: P'(k) ~ P(k) w(k).

    Batched, as published, the weights of a batch come from that batch alone. With `prequential=True` (ours)
    those of a row come from the rows before it: refitted from `warmup` rows on whenever the history has
    grown by the share `growth`, however the stream is cut into batches.
    With `bcts=True` the logits are first calibrated on the source's labelled validation rows.
    """

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        prequential: bool = False,
        bcts: bool = False,
        growth: float = 0.02,
        warmup: int = 32,
        **options: object,
    ) -> None:
        shared = {"prequential": prequential, "bcts": bcts, "growth": growth, "warmup": warmup}
        super().__init__(model, source, **shared, **options)
        if growth < 0:
            raise ValueError(f"growth must be 0 (refit at every row) or more, got {growth}")
        if warmup < 1:
            raise ValueError(f"warmup must be at least 1 row, got {warmup}")
        self.prequential = prequential
        self.growth = growth
        self.scaling: temperature.Scaling | None = None
        if bcts:
            sample = source.labelled(self.info.title)
            self.scaling = temperature.fit(as_rows(sample.logits), sample.y, biased=True)
        self._count = 0
        self._due = warmup
        self._weights = np.ones(len(source.prior))

    @abstractmethod
    def weights(self, stack: Floats, /) -> Floats:
        """Weights (M, K) of M batches of calibrated logits (M, B, K); counts its steps and skips."""

    @abstractmethod
    def observe(self, rows: Floats, /) -> None:
        """Add calibrated logits (n, K) to the history."""

    @abstractmethod
    def refit(self) -> Floats:
        """Weights (K,) from the whole history; counts a step or a skip."""

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Answer one batch: by its own weights, or row by row by those of the past."""
        return self.replay(z, batch=max(len(z), 1))

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:  # noqa: ARG002
        """Answer the stream, many batches at once."""
        z = np.asarray(z, dtype=np.float64)
        check(z)
        if batch < 1:
            raise ValueError(f"batch size must be at least 1, got {batch}")
        if len(z) == 0:
            return as_answer(z)
        rows = self.calibrated(z)
        w = self._from_past(rows) if self.prequential else self._from_batches(rows, batch)
        return self.finite(reweighted(rows, w, z), as_answer(z))

    def calibrated(self, z: Floats) -> Floats:
        """One column a class, through the source's calibration map if there is one."""
        rows = as_rows(z)
        if rows.shape[1] != len(self.source.prior):
            raise ValueError(
                f"logits of {rows.shape[1]} classes, but the source prior has {len(self.source.prior)}: "
                "pass the prior of the network's own classes"
            )
        return rows if self.scaling is None else self.scaling(rows)

    def _from_batches(self, rows: Floats, batch: int) -> Floats:
        n, classes = rows.shape
        whole = n - n % batch
        parts = [
            np.repeat(self.weights(part.reshape(-1, size, classes)), size, axis=0)
            for part, size in ((rows[:whole], batch), (rows[whole:], n - whole))
            if len(part)
        ]
        return np.concatenate(parts)

    def _from_past(self, rows: Floats) -> Floats:
        w = np.empty_like(rows)
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + self._due - self._count)
            w[start:stop] = self._weights
            self.observe(rows[start:stop])
            self._count += stop - start
            if self._count == self._due:
                self._weights = self.refit()
                self._due = max(self._count + 1, math.ceil(self._count * (1 + self.growth)))
            start = stop
        return w


def reweighted(rows: Floats, w: Floats, z: Floats) -> Answer:
    """The answer of P(k) w(k) / sum, in the shape of `z`; rows that end in a vertex all score alike."""
    with np.errstate(divide="ignore"):
        scores = rows + np.log(w)
    vertex = np.isneginf(scores).any(axis=1)
    scores[vertex] = np.maximum(links.log_softmax(scores[vertex]), LOG_ZERO)
    return from_rows(scores, z)
