"""The paper's method and its ablation's origins, all through the library's own code."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ploc import PLOC, origin
from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import (
    Answer,
    Card,
    Floats,
    OutputMethod,
    SourceInfo,
    as_answer,
    as_rows,
    from_rows,
)

ORIGINS: dict[str, type[origin.Origin]] = {
    "mean": origin.Mean,
    "ema": origin.EMA,
    "window": origin.Window,
    "huber": origin.Huber,
    "zscore": origin.ZScore,
    "median": origin.Median,
}


class Ploc(BatchFree):
    """Each logit centred by the running origin of the logits before it: `sigmoid(z_t - mu_(t-1))` (Eq. 2).

    Rows are centred one by one whatever the batch, so that no cut of the stream changes an answer. With
    `by="batch"` a batch is centred by the batches before it only, which is a different method for each size.
    `origin` names an estimate of `ploc.origin`, whose own settings follow it. `anchor="source"` puts the
    centred logits where the source's validation logits have their mean; the paper's is 0.
    """

    info = Card(
        "PLOC",
        needs="logits",
        changes="nothing: one running number is subtracted from the logit",
        at_one="as at any batch size: rows are centred one by one",
        ours=True,
    )

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        origin: str = "mean",
        anchor: float | Literal["source"] = 0.0,
        by: Literal["row", "batch"] = "row",
        **settings: float,
    ) -> None:
        super().__init__(model, source, origin=origin, anchor=anchor, by=by, **settings)
        if origin not in ORIGINS:
            raise ValueError(f"no origin is called {origin!r}; there are: {', '.join(ORIGINS)}")
        if by not in ("row", "batch"):
            raise ValueError(f"by must be 'row' or 'batch', got {by!r}")
        if isinstance(anchor, str) and anchor != "source":
            raise ValueError(f"anchor must be a number or 'source', got {anchor!r}")
        self.origin = ORIGINS[origin](**settings)
        self.anchor = anchor
        self.by = by
        self.center: PLOC | None = None

    @property
    def state_size(self) -> int:
        """Numbers that the origin keeps, for each logit."""
        if self.center is None:
            return 0
        match self.origin:
            case origin.ZScore():
                kept = 2
            case origin.Window():
                kept = self.origin.rows
            case origin.Median():
                kept = self.center.count
            case _:
                kept = 1
        return kept * (self.center.classes or 1)

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Centre one batch and let it move the origin."""
        return self.centred(z, rowwise=self.by == "row")

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:
        """Centre the stream, in one pass unless batches are to be centred together."""
        if self.by == "batch" and batch > 1:
            return OutputMethod.replay(self, z, f, batch)
        return super().replay(z, f, batch)

    def stream(self, z: Floats, _f: NDArray[Any] | None, /) -> Answer:
        """Centre rows that came one by one: a batch of one has no other rows to be centred with."""
        return self.centred(z, rowwise=True)

    def centred(self, z: Floats, *, rowwise: bool) -> Answer:
        """Answer the stream's next rows by the rows before each, or by the rows before them all."""
        if self.center is None:
            self.center = self.start(z)
        self.step(len(z))
        if rowwise:
            return as_answer(self.center.replay(z, logits=True))
        scores = self.center.predict(z, logits=True)
        self.center.observe(z)
        return as_answer(scores)

    def start(self, z: Floats) -> PLOC:
        """A new centre for logits of this shape."""
        return PLOC(None if z.ndim == 1 else z.shape[1], origin=self.origin, anchor=self.target(z))

    def target(self, z: Floats) -> Any:
        """Where the centred logits are to sit: a number, or one a class."""
        if self.anchor != "source":
            return self.anchor
        logits = self.source.labelled("PLOC anchored at the source").logits
        if logits.shape[1:] != z.shape[1:]:
            raise ValueError(
                f"validation logits are {logits.shape}, the stream's {z.shape}: not one network's"
            )
        mean = np.mean(logits, axis=0, dtype=np.float64)
        return float(mean) if z.ndim == 1 else mean


class PlocK(Ploc):
    """PLOC-K: K logits centred coordinate by coordinate; a relative logit z enters as two logits, [0, z]."""

    info = Card(
        "PLOC-K",
        needs="logits",
        changes="nothing: K running numbers are subtracted from the logits",
        at_one="as at any batch size: rows are centred one by one",
        ours=True,
    )

    def centred(self, z: Floats, *, rowwise: bool) -> Answer:
        """Answer the stream's next rows, each as K logits."""
        return from_rows(super().centred(as_rows(z), rowwise=rowwise).scores, z)
