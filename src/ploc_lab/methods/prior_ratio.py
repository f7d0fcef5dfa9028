"""The source's known class rates: logit adjustment (Menon et al., 2021) and a moved threshold."""

import numpy as np
from torch import nn

from ploc import links
from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import (
    Answer,
    Card,
    Floats,
    SourceInfo,
    as_answer,
    as_rows,
)


class PriorRatio(BatchFree):
    """`z_k - tau ln pi_k`: the posterior that a source with equal class rates would have given.

    It needs what PLOC does without, the source's rates; it is deferred PLOC's known-prior counterpart.
    """

    info = Card(
        "Prior ratio (logit adjustment)",
        needs="source rates",
        changes="nothing: logits are shifted by the source's log rates",
        at_one="the same: a constant shift",
    )

    def __init__(self, model: nn.Module | None, source: SourceInfo, *, tau: float = 1.0) -> None:
        super().__init__(model, source, tau=tau)
        if not np.isfinite(tau):
            raise ValueError(f"tau must be finite, got {tau}")
        self.shift = tau * np.log(source.prior)

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Shift the batch."""
        _same_classes(z, self.shift)
        return as_answer(z - (self.shift[1] - self.shift[0] if z.ndim == 1 else self.shift))


class PriorThreshold(BatchFree):
    """Say 1 where P(y=1) >= pi_1: the source's rate as the threshold, for two classes.

    Decisions equal those of `PriorRatio`. So that they are read at one half like every method's, P is
    stretched by a straight line on either side, [0, pi_1] to [0, 1/2] and [pi_1, 1] to [1/2, 1]; the ranking
    is the source's.
    """

    info = Card(
        "Source-rate threshold",
        needs="source rates",
        changes="nothing: the threshold is the source's rate",
        at_one="the same: a constant threshold",
    )

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Stretch the batch's probabilities."""
        _same_classes(z, self.source.prior)
        rows = as_rows(z)
        if rows.shape[1] != 2:
            raise ValueError(
                f"a threshold needs two classes, got {rows.shape[1]} logits: use the method 'prior_ratio'"
            )
        p = links.softmax(rows)
        # The smaller side is computed from its own probability, so that neither end is lost to rounding.
        low = 0.5 * p / self.source.prior
        side = p[:, 1] >= self.source.prior[1]
        one = np.where(side, 1 - low[:, 0], low[:, 1])
        return Answer(one if z.ndim == 1 else np.stack([1 - one, one], axis=1), z)


def _same_classes(z: Floats, prior: Floats) -> None:
    classes = 2 if z.ndim == 1 else z.shape[1]
    if classes != len(prior):
        raise ValueError(
            f"logits of {classes} classes, but the source prior has {len(prior)}: "
            "pass the prior of the network's own classes"
        )
