"""PLOC-prob: the paper's centring after the sigmoid."""

import numpy as np
from torch import nn

from ploc import PLOCProb, links
from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import Answer, Card, Floats, SourceInfo


class PlocProb(BatchFree):
    """`clip(p_t - mean of past p + 1/2, 0, 1)`; the first row is answered with its own p. Two classes.

    The clip is part of the method and so are the ties it makes: the score is the answer itself.
    """

    info = Card(
        "PLOC-prob",
        needs="logits",
        changes="nothing: one running number is subtracted from the probability",
        at_one="as at any batch size: rows are centred one by one",
        ours=True,
    )

    def __init__(self, model: nn.Module | None, source: SourceInfo) -> None:
        super().__init__(model, source)
        self.center = PLOCProb()

    @property
    def state_size(self) -> int:
        """The running mean."""
        return 1

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Centre one batch and let it move the origin."""
        if z.ndim == 2 and z.shape[1] != 2:
            raise ValueError(f"PLOC-prob is defined for two classes, got {z.shape[1]} logits: use 'ploc_k'")
        p = np.asarray(links.sigmoid(z if z.ndim == 1 else z[:, 1] - z[:, 0]))
        centred = np.asarray(self.center.replay(p))
        self.step(len(z))
        probs = centred if z.ndim == 1 else np.stack([1 - centred, centred], axis=1)
        return Answer(probs, probs)
