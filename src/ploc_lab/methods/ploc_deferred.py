"""Deferred PLOC: the whole stream is seen before its first row is answered."""

import numpy as np

from ploc import PLOC
from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import Answer, Card, Floats, as_answer


class PlocDeferred(BatchFree):
    """Every logit centred by the mean of all of them: `sigmoid(z_t - mu_T)`; the source's ranking, exactly.

    Its information is that of a batch method at B = T. So one call is one stream: `replay` answers it whole
    whatever `batch` says, `respond` takes the batch it is given for the stream and refuses a second one.
    """

    info = Card(
        "Deferred PLOC",
        needs="logits",
        changes="nothing: the stream's mean logit is subtracted",
        at_one="not a streaming method: it has the information of B = T",
        ours=True,
    )

    @property
    def state_size(self) -> int:
        """Nothing is carried: there is no next batch."""
        return 0

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Observe the stream, then answer it."""
        if self.steps:
            raise ValueError(
                "deferred PLOC must see the whole stream before it answers, and one was answered already: "
                "hand it over in one batch or to replay(), and build a new method for each stream"
            )
        center = PLOC(None if z.ndim == 1 else z.shape[1])
        center.observe(z)
        self.step(len(z))
        return as_answer(np.asarray(center.predict(z, logits=True)))
