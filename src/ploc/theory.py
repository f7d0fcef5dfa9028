"""What the paper proves, as numbers of a stream: the exact guarantee, the drift bound, the variance."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from ploc import links, metrics
from ploc.origin import Huber, Mean, Median, columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ploc.origin import Origin

    Floats = NDArray[np.float64]

__all__ = ["Drift", "LabelFree", "drift_bound", "label_free_bound", "reordered", "variance", "weights"]


@dataclass(frozen=True)
class Drift:
    """Proposition 2 on one labelled stream: |auroc_ploc - auroc_source| <= bound = pairs / (n+ n-)."""

    pairs: int
    bound: float
    auroc_source: float
    auroc_ploc: float

    @property
    def drift(self) -> float:
        """How far AUROC moved."""
        return self.auroc_ploc - self.auroc_source


def drift_bound(z: ArrayLike, y: ArrayLike) -> Drift:
    """How far PLOC can move AUROC on this stream, and how far it did (Proposition 2), in O(T log T).

    `pairs` is the size of I_T: positive-negative pairs whose logits lie no further apart than the means
    they are centred by. With one class missing there are no pairs and the AUROCs are nan.

    >>> d = drift_bound([0.0, 2.0, 1.0, 3.0], [0, 1, 0, 1])
    >>> d.pairs, d.bound, d.auroc_source, d.auroc_ploc
    (1, 0.25, 1.0, 1.0)
    """
    z = _stream(z)
    shifts, _ = Mean().trail(z)
    positive = np.asarray(y)
    source, ploc = metrics.auroc(z, positive), metrics.auroc(z - shifts, positive)
    positive = positive.astype(bool)
    all_pairs = int(positive.sum()) * int((~positive).sum())
    pairs = all_pairs - _discordant(shifts - z, shifts + z, positive)
    return Drift(pairs, pairs / all_pairs if all_pairs else nan, source, ploc)


@dataclass(frozen=True)
class LabelFree:
    """Proposition 2 without labels: `pairs` counts every pair of rows that could change its order."""

    pairs: int
    rows: int

    def bound(self, positives: int) -> float:
        """The most that AUROC can move if `positives` of the rows, whichever, are positive; at most 1.

        >>> label_free_bound([0.0, 2.0, 1.0, 3.0]).bound(2)
        0.75
        """
        if not 0 < positives < self.rows:
            raise ValueError(f"positives must lie between 0 and {self.rows} rows, got {positives}")
        return min(1.0, self.pairs / (positives * (self.rows - positives)))


def label_free_bound(z: ArrayLike) -> LabelFree:
    """The pairs of I_T over all pairs of rows, whatever their labels: a bound known before any label is."""
    z = _stream(z)
    shifts, _ = Mean().trail(z)
    return LabelFree(len(z) * (len(z) - 1) // 2 - _discordant(shifts - z, shifts + z), len(z))


def reordered(z: ArrayLike, centred: ArrayLike) -> int:
    """Neighbours in the order of `z` that `centred` ranks otherwise: 0 exactly when the ranking is preserved.

    Proposition 1 says 0 for deferred PLOC. In float64 a shift can also tie two logits that lie closer
    together than the shift's own rounding; that counts too.

    >>> reordered([1.0, 2.0, 2.0], [-1.0, 0.0, 0.0]), reordered([1.0, 2.0], [0.0, 0.0])
    (0, 1)
    """
    z, centred = _stream(z), _stream(centred)
    if z.shape != centred.shape:
        raise ValueError(f"{len(z)} logits do not go with {len(centred)} centred ones")
    order = np.lexsort((centred, z))
    return int(np.count_nonzero(np.sign(np.diff(z[order])) != np.sign(np.diff(centred[order]))))


def weights(kind: Origin, rows: int) -> Floats:
    """The weight a linear origin gives each of `rows` past logits, oldest first: its answer to unit impulses.

    >>> from ploc import origin
    >>> weights(origin.EMA(0.5), 3), weights(origin.Window(2), 3)
    (array([0.25, 0.25, 0.5 ]), array([0. , 0.5, 0.5]))
    """
    if isinstance(kind, (Huber, Median)):
        raise ValueError(f"{kind!r} is not linear: it gives past logits no weights")  # noqa: TRY004
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    impulses = columns(kind, rows)
    for row in np.eye(rows):
        impulses.push(row)
    return np.array(impulses.shift)


def variance(kind: Origin, rows: int) -> float:
    """Variance of a linear origin after `rows` independent logits of variance 1 (Proposition 3): sum of w^2.

    The mean's is 1 / rows, and no other unbiased linear origin's is smaller.

    >>> from ploc import origin
    >>> round(variance(origin.Mean(), 100), 4), round(variance(origin.EMA(0.2), 100), 4)
    (0.01, 0.1111)
    """
    return float(np.sum(weights(kind, rows) ** 2))


def _stream(z: ArrayLike) -> Floats:
    z = links.reals(z)
    if z.ndim != 1:
        raise ValueError(f"logits have shape {z.shape}; a stream of relative logits is (T,)")
    return z


def _discordant(u: Floats, v: Floats, positive: NDArray[np.bool_] | None = None) -> int:
    """Pairs of rows (of unlike label, where labels are given) that u and v order strictly oppositely.

    Rows in the order of u (ties by v) carry the ranks of v; a discordant pair is an inversion. Ranks are
    settled bit by bit from the top: within a group that agrees so far, each row with a 0 forms an
    inversion with every earlier row that has a 1, then the group is parted, keeping order.
    """
    order = np.lexsort((v, u))
    rank = np.unique(v, return_inverse=True)[1][order]
    sides = [np.ones(len(u), dtype=bool)] * 2 if positive is None else [positive[order], ~positive[order]]
    count, group = 0, np.zeros(len(u), dtype=np.int64)  # each row's first row of its group
    for bit in reversed(range(int(rank.max(initial=0)).bit_length())):
        one = (rank >> bit) & 1 == 1
        for early, late in (sides, sides[::-1])[: 1 if positive is None else 2]:
            ones = np.concatenate(([0], np.cumsum(one & early)))
            before = ones[:-1] - ones[group]
            count += int(before[~one & late].sum())
        zeros = np.concatenate(([0], np.cumsum(~one)))
        ends = np.append(np.flatnonzero(np.diff(group)) + 1, len(group))
        end = ends[np.searchsorted(ends, np.arange(len(group)), side="right")]
        middle = group + zeros[end] - zeros[group]  # where the ones of the group will start
        index = np.arange(len(group))
        place = np.where(
            one, middle + (index - group) - (zeros[:-1] - zeros[group]), group + zeros[:-1] - zeros[group]
        )
        parted = np.empty_like(index)
        parted[place] = index
        group = np.where(one, middle, group)[parted]
        rank, sides = rank[parted], [side[parted] for side in sides]
    return count
