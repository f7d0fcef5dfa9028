"""LAME (Boudiaf et al., CVPR 2022): a batch's predictions drawn towards those of its neighbours."""

from typing import Any, Literal, Protocol

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

Affinity = Literal["knn", "rbf", "linear"]
ENTRIES = 1 << 20  # distances held at once: 8 MiB


class LAME(OutputMethod):
    """Maximise the Laplacian-regularised likelihood by its concave-convex loop: Y <- softmax(ln P + W Y).

    W is the affinity of the batch's L2-normalised features: `knn` (each row's `k` nearest others, weight 1),
    `rbf` (bandwidth: the mean distance to the k-th nearest, the row itself counted) or `linear` (cosines).
    A batch of one is the identity for all three; the released rbf would divide 0 by 0 there and linear would
    sharpen the row by itself.
    """

    info = Card(
        "LAME",
        needs="features",
        changes="nothing: the batch's probabilities are refined together",
        at_one="identity: a row alone has no neighbours",
    )
    needs_features = True

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        affinity: Affinity = "knn",
        k: int = 5,
        most: int = 100,
    ) -> None:
        super().__init__(model, source, affinity=affinity, k=k, most=most)
        if affinity not in ("knn", "rbf", "linear"):
            raise ValueError(f"affinity must be 'knn', 'rbf' or 'linear', got {affinity!r}")
        if k < 1 or most < 1:
            raise ValueError(f"k and most must be at least 1, got k={k}, most={most}")
        self.affinity = affinity
        self.k = k
        self.most = most

    def answer(self, z: Floats, f: Floats | None, /) -> Answer:
        """Refine one batch."""
        return self.replay(z, f, batch=max(len(z), 1))

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:
        """Refine the stream batch by batch, many small batches at once."""
        z = np.asarray(z, dtype=np.float64)
        check(z)
        if batch < 1:
            raise ValueError(f"batch size must be at least 1, got {batch}")
        if f is None or len(f) != len(z):
            raise ValueError("LAME needs the network's features: pass f, one row a logit")
        rows = as_rows(z)
        scores = np.array(rows)
        whole = len(z) - len(z) % batch
        together = batch * max(1, ENTRIES // batch**2)
        for start in range(0, len(z), together) if batch > 1 else ():
            stop = min(start + together, whole)
            self._refine(rows, f, scores, slice(start, stop), batch)
        self._refine(rows, f, scores, slice(whole, len(z)), len(z) - whole)
        if batch == 1 or len(z) - whole == 1:
            self.skip("batch of one row", len(z) if batch == 1 else 1)
        return self.finite(from_rows(scores, z), as_answer(z))

    def _refine(self, rows: Floats, f: NDArray[Any], scores: Floats, part: slice, size: int) -> None:
        """Write the refined logits of the consecutive batches in `part`."""
        if part.stop <= part.start or size < 2:
            return
        classes = rows.shape[1]
        features = np.asarray(f[part], dtype=np.float64).reshape(-1, size, f.shape[1])
        length = np.linalg.norm(features, axis=2, keepdims=True)
        features = features / np.maximum(length, 1e-12)
        graph = _GRAPHS[self.affinity](features, self.k)
        log_p = np.log(links.softmax(rows[part]) + 1e-10).reshape(-1, size, classes)
        scores[part] = concave_convex(log_p, graph, self.most).reshape(-1, classes)
        self.step(len(features))


class Graph(Protocol):
    """Affinities W of M batches of N rows."""

    def pull(self, y: Floats, live: NDArray[np.intp]) -> Floats:
        """W Y of the batches `live`, (L, N, K): each row's neighbours, weighted and summed."""
        ...


class Neighbours:
    """The k nearest other rows by Euclidean distance, all of weight 1; not symmetric, as published."""

    def __init__(self, features: Floats, k: int) -> None:
        batches, size, _ = features.shape
        k = min(k, size - 1)
        self.index = np.empty((batches, size, k), dtype=np.intp)
        block = max(1, ENTRIES // (batches * size))
        for start in range(0, size, block):
            some = slice(start, min(start + block, size))
            squared = _squared_distances(features, some)
            own = np.arange(some.start, some.stop)
            squared[:, own - start, own] = np.inf
            self.index[:, some] = np.argpartition(squared, k - 1, axis=2)[:, :, :k]

    def pull(self, y: Floats, live: NDArray[np.intp]) -> Floats:
        """Sum over each row's neighbours."""
        index = self.index[live]
        offset = (np.arange(len(live)) * y.shape[1])[:, None]
        flat = y.reshape(-1, y.shape[2])
        total: Floats = flat[index[:, :, 0] + offset]
        for j in range(1, index.shape[2]):
            total += flat[index[:, :, j] + offset]
        return total


class Gaussian:
    """exp(-D^2 / 2 sigma^2), the diagonal included."""

    def __init__(self, features: Floats, k: int) -> None:
        size = features.shape[1]
        squared = _squared_distances(features, slice(0, size))
        nearest = np.sqrt(np.partition(squared, min(k, size) - 1, axis=2)[:, :, min(k, size) - 1])
        sigma = np.maximum(nearest.mean(axis=1), 1e-12)[:, None, None]
        self.w = np.exp(-squared / (2 * sigma**2))

    def pull(self, y: Floats, live: NDArray[np.intp]) -> Floats:
        """The dense product."""
        product: Floats = self.w[live] @ y
        return product


class Cosine:
    """Phi Phi^T, never formed."""

    def __init__(self, features: Floats, _k: int) -> None:
        self.features = features

    def pull(self, y: Floats, live: NDArray[np.intp]) -> Floats:
        """The product, from the right."""
        phi = self.features[live]
        product: Floats = phi @ (np.swapaxes(phi, 1, 2) @ y)
        return product


_GRAPHS: dict[str, type[Neighbours | Gaussian | Cosine]] = {
    "knn": Neighbours,
    "rbf": Gaussian,
    "linear": Cosine,
}


def concave_convex(log_p: Floats, graph: Graph, most: int = 100) -> Floats:
    """Refined logits (M, N, K) of M batches: ln P + W Y, repeated until a batch's energy has settled.

    The energy sum(Y ln Y - Y ln P - Y W Y) is compared with the step before by 1e-8 relative, as published.
    """
    logits = np.array(log_p)
    live = np.arange(len(log_p))
    y = links.softmax(log_p)
    before = np.full(len(log_p), np.inf)
    for i in range(most):
        now = log_p[live]
        pulled = graph.pull(y, live)
        new = now + pulled
        y = links.softmax(new)
        energy = np.sum(y * (np.log(np.maximum(y, 1e-20)) - now - pulled), axis=(1, 2))
        logits[live] = new
        going = (i < 2) | (np.abs(energy - before) > 1e-8 * np.abs(before))
        live, y, before = live[going], y[going], energy[going]
        if not live.size:
            break
    return logits


def _squared_distances(features: Floats, some: slice) -> Floats:
    """|a - b|^2 = 2 - 2 a.b for rows of length one; a zero row counts as it is."""
    length = np.sum(features**2, axis=2)
    squared: Floats = features[:, some] @ np.swapaxes(features, 1, 2)
    squared *= -2
    squared += length[:, some, None]
    squared += length[:, None, :]
    return np.maximum(squared, 0, out=squared)
