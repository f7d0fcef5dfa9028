"""Black-box shift estimation (Lipton et al., 2018): class weights from the source's confusion matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ploc import links
from ploc_lab.methods.label_shift import LabelShift
from ploc_lab.methods.protocol import Card, Floats, SourceInfo

SINGULAR = 1e10  # a condition number beyond it leaves fewer than six digits of a weight


class BBSE(LabelShift):
    """Solve C w = mu: C(i, j) is the source's rate of (predicted i, true j), mu(i) the target's of i.

    Hard by default (a prediction is an argmax); with `soft=True` a prediction is its whole posterior.
    Negative weights become 0. A singular C leaves the source's answer and is counted.
    """

    info = Card(
        "BBSE",
        needs="source labels",
        changes="nothing: the posteriors are reweighed",
        at_one="one prediction is an indicator, and clipping leaves a vertex",
    )

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        soft: bool = False,
        prequential: bool = False,
        bcts: bool = False,
        growth: float = 0.02,
        warmup: int = 32,
        **options: object,
    ) -> None:
        super().__init__(
            model,
            source,
            prequential=prequential,
            bcts=bcts,
            growth=growth,
            warmup=warmup,
            soft=soft,
            **options,
        )
        self.soft = soft
        sample = source.labelled(self.info.title)
        rows = self.calibrated(sample.logits)
        self.confusion = confusion(predictions(rows, soft=soft), sample.y)
        self._total = np.zeros(rows.shape[1])

    @property
    def state_size(self) -> int:
        """The past's predictions, a sum a class."""
        return len(self._total) if self.prequential else 0

    def weights(self, stack: Floats, /) -> Floats:
        """Weights of each batch by itself."""
        return self.solve(predictions(stack, soft=self.soft).mean(axis=1))

    def observe(self, rows: Floats, /) -> None:
        """Add up the predictions, one after another: no cut of the stream changes a bit of the sum."""
        running = np.vstack([self._total, predictions(rows, soft=self.soft)])
        self._total = np.add.accumulate(running, axis=0)[-1]

    def refit(self) -> Floats:
        """Weights from the rates of all past predictions."""
        weights: Floats = self.solve(self._total[None] / self._total.sum())[0]
        return weights

    def solve(self, mu: Floats) -> Floats:
        """Weights (M, K) for the target's rates `mu` (M, K); ones where there is no answer."""
        if not np.linalg.cond(self.confusion) < SINGULAR:
            self.skip("singular confusion matrix: the predictions do not tell the classes apart", len(mu))
            return np.ones_like(mu)
        self.step(len(mu))
        weights: Floats = np.maximum(np.linalg.solve(self.confusion, mu.T).T, 0.0)
        return weights


def predictions(rows: Floats, *, soft: bool) -> Floats:
    """What the classifier says of each row: an indicator of its argmax (ties: lowest), or its posterior."""
    if soft:
        return links.softmax(rows)
    hard: Floats = np.eye(rows.shape[-1])[rows.argmax(axis=-1)]
    return hard


def confusion(predicted: Floats, y: NDArray[np.integer[Any]]) -> Floats:
    """Joint rates C(i, j) of (predicted i, true j).

    >>> confusion(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), np.array([0, 0, 1, 1]))
    array([[0.25, 0.  ],
           [0.25, 0.5 ]])
    """
    joint: Floats = predicted.T @ np.eye(predicted.shape[1])[y] / len(y)
    return joint
