"""No adaptation: the frozen network as it is."""

from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import Answer, Card, Floats, as_answer


class Source(BatchFree):
    """The network's own probabilities."""

    info = Card("Source", needs="logits", changes="nothing", at_one="the same: rows are answered one by one")

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Answer with the logits as they are."""
        return as_answer(z)
