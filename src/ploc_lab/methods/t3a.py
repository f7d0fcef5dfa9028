"""T3A (Iwasawa and Matsuo, NeurIPS 2021): prototypes of confident target features for a head."""

import heapq
from typing import Any, Literal, cast

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
    batches,
    check,
)


class T3A(OutputMethod):
    """Class prototypes: the normalised sum of the `keep` supports of lowest entropy under each pseudo-label.

    Supports start as the rows of the head and grow with every target feature, the batch's own before it is
    answered. `keep=None` keeps all. Logits are features times unit prototypes, so their scale is arbitrary
    and so are NLL and ECE; `scale="head"` multiplies by the mean length of the head's rows.
    """

    info = Card(
        "T3A",
        needs="features",
        changes="nothing: the head is replaced by a copy of prototypes",
        at_one="defined: each row joins the supports, then is answered",
    )
    needs_features = True

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        keep: int | None = 100,
        scale: Literal["raw", "head"] = "raw",
    ) -> None:
        super().__init__(model, source, keep=keep, scale=scale)
        if keep is not None and keep < 1:
            raise ValueError(f"keep must be at least 1 support a class, or None for all, got {keep}")
        if scale not in ("raw", "head"):
            raise ValueError(f"scale must be 'raw' or 'head', got {scale!r}")
        head = getattr(model, "head", None)
        if not isinstance(head, nn.Linear):
            raise ValueError("T3A needs the network's linear head: build it with a network that has .head")  # noqa: TRY004
        self.keep = keep
        w = head.weight.detach().double().numpy()
        bias = cast(nn.Parameter | None, head.bias)  # its type says that there always is one
        b = np.zeros(len(w)) if bias is None else bias.detach().double().numpy()
        if len(w) == 1:  # one relative logit: the two-class head with the same softmax
            w, b = np.concatenate([-w / 2, w / 2]), np.concatenate([-b / 2, b / 2])
        self.length = float(np.linalg.norm(w, axis=1).mean()) if scale == "head" else 1.0
        self._sums = np.zeros_like(w)
        self._heaps: list[list[tuple[float, int, Floats]]] = [[] for _ in w]
        self._seen = 0
        self._admit(w, *_pseudo(w @ w.T + b))

    @property
    def state_size(self) -> int:
        """Features, entropy and label of every support."""
        return sum(map(len, self._heaps)) * (int(self._sums.shape[1]) + 2)

    def answer(self, z: Floats, f: Floats | None, /) -> Answer:
        """Let the batch join the supports, then answer it."""
        return self.replay(z, f, batch=max(len(z), 1))

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:
        """Answer the stream; batches between two changes of the prototypes are answered together."""
        z = np.asarray(z, dtype=np.float64)
        check(z)
        if f is None or len(f) != len(z):
            raise ValueError("T3A needs the network's features: pass f, one row a logit")
        f = np.asarray(f, dtype=np.float64)
        label, entropy = _pseudo(np.stack([-z / 2, z / 2], axis=1) if z.ndim == 1 else z)
        logits = np.empty((len(z), len(self._sums)))
        start = 0
        for rows in batches(len(z), batch):
            if self._wants(label[rows], entropy[rows]):
                logits[start : rows.start] = self._logits(f[start : rows.start])
                start = rows.start
                self._admit(f[rows], label[rows], entropy[rows])
                self.step()
            else:
                self.skip("no row of the batch entered the supports")
                self._seen += rows.stop - rows.start
        logits[start:] = self._logits(f[start:])
        scores = logits[:, 1] - logits[:, 0] if z.ndim == 1 else logits
        return self.finite(as_answer(scores), as_answer(z))

    def _logits(self, f: Floats) -> Floats:
        lengths = np.linalg.norm(self._sums, axis=1, keepdims=True)
        out: Floats = f @ (self._sums / np.maximum(lengths, 1e-12)).T * self.length
        return out

    def _wants(self, label: list[int], entropy: list[float]) -> bool:
        """Whether any of these rows is among the supports to keep."""
        return any(self._room(k, e) for k, e in zip(label, entropy, strict=True))

    def _room(self, k: int, entropy: float) -> bool:
        heap = self._heaps[k]
        return self.keep is None or len(heap) < self.keep or entropy < -heap[0][0]

    def _admit(self, f: Floats, label: list[int], entropy: list[float]) -> None:
        """Add rows to their classes' supports; a full class gives up its highest entropy."""
        for row, k, e in zip(f, label, entropy, strict=True):
            if self._room(k, e):
                unit = row / max(float(np.linalg.norm(row)), 1e-12)
                heap = self._heaps[k]
                heapq.heappush(heap, (-e, -self._seen, unit))
                self._sums[k] += unit
                if self.keep is not None and len(heap) > self.keep:
                    self._sums[k] -= heapq.heappop(heap)[2]
            self._seen += 1


def _pseudo(rows: Floats) -> tuple[list[int], list[float]]:
    """Pseudo-label (ties to the lowest class) and entropy of each row of logits."""
    log_p = links.log_softmax(rows)
    return rows.argmax(axis=1).tolist(), (-np.sum(np.exp(log_p) * log_p, axis=1)).tolist()
