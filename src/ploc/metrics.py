"""The paper's seven metrics, and the two AUROCs of more than two classes; only here do labels enter.

Binary answers are (T,) probabilities of class 1 with labels 0 and 1; K classes are (T, K) with labels 0..K-1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ploc import links

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["Metrics", "auroc", "auroc_ovo", "auroc_ovr", "ece", "evaluate", "reliability", "roc_curve"]

BINS = 15
CLIP = 1e-6


@dataclass(frozen=True)
class Metrics:
    """The seven numbers; one that the data leave undefined is nan, with its reason in `undefined`."""

    accuracy: float
    balanced_accuracy: float
    f1: float
    auroc: float
    ece: float
    nll: float
    brier: float
    undefined: dict[str, str] = field(default_factory=dict)

    def asdict(self) -> dict[str, float]:
        """The seven numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "undefined"}


def evaluate(probs: ArrayLike, y: ArrayLike, scores: ArrayLike | None = None) -> Metrics:
    """All seven metrics. `scores` are the centred logits: they rank rows whose sigmoids have saturated alike.

    Decisions are p >= 1/2, or the first of the largest of K. F1 is that of class 1, for K classes their
    mean; AUROC is one-vs-one for K classes. ECE has 15 equal bins (a, b] of the largest probability,
    NLL clips at 1e-6, Brier is the mean squared error, summed over K classes.

    >>> m = evaluate([0.9, 0.2, 0.6], [1, 0, 0])
    >>> round(m.accuracy, 3), m.auroc, round(m.brier, 3)
    (0.667, 1.0, 0.137)
    """
    P, y, K = _checked(probs, y)
    hits = _decide(P) == y
    undefined = {}
    recalls = [hits[y == k].mean() for k in range(K) if (y == k).any()]
    if len(recalls) < K:
        missing = [k for k in range(K) if not (y == k).any()]
        undefined["balanced_accuracy"] = f"no row of class {', '.join(map(str, missing))}"
    area, reason = _area(P, y, scores)
    if reason:
        undefined["auroc"] = reason
    taken = np.where(y == 1, P, 1.0 - P) if P.ndim == 1 else P[np.arange(len(y)), y]
    return Metrics(
        accuracy=float(hits.mean()),
        balanced_accuracy=nan if len(recalls) < K else float(np.mean(recalls)),
        f1=_f1(_decide(P), y, K),
        auroc=area,
        ece=ece(P, y),
        nll=float(-np.log(np.clip(taken, CLIP, 1.0 - CLIP)).mean()),
        brier=float(np.mean((P - y) ** 2 if P.ndim == 1 else ((P - np.eye(K)[y]) ** 2).sum(axis=1))),
        undefined=undefined,
    )


def auroc(scores: ArrayLike, y: ArrayLike) -> float:
    """The probability that a positive row outscores a negative one, ties counting one half; nan without both.

    Counted in whole numbers, so two rankings that agree have the same AUROC to the last bit.

    >>> auroc([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    0.875
    """
    s = _scores(scores)
    positive = _labels(y, s, 2).astype(bool)
    n_pos = int(positive.sum())
    n_neg = len(s) - n_pos
    if not n_pos or not n_neg:
        return nan
    negatives = np.sort(s[~positive])
    positives = np.sort(s[positive])
    below = np.searchsorted(negatives, positives, side="left").sum(dtype=np.int64)
    not_above = np.searchsorted(negatives, positives, side="right").sum(dtype=np.int64)
    return int(below + not_above) / (2 * n_pos * n_neg)


def auroc_ovo(Z: ArrayLike, y: ArrayLike) -> float:
    """Macro one-vs-one AUROC: for each pair of classes, their rows ranked by z_k - z_j; nan if one is empty.

    `Z` are logits or log-probabilities: pairwise differences are the same (Remark 1).
    """
    Z = _rows(Z, "score")
    labels = _labels(y, Z, Z.shape[1])
    if len(np.unique(labels)) < Z.shape[1]:
        return nan
    areas = []
    for j, k in combinations(range(Z.shape[1]), 2):
        pair = (labels == j) | (labels == k)
        areas.append(auroc(Z[pair, k] - Z[pair, j], labels[pair] == k))
    return float(np.mean(areas))


def auroc_ovr(P: ArrayLike, y: ArrayLike) -> float:
    """Macro one-vs-rest AUROC of the class probabilities; classes without rows of both kinds are left out."""
    P = _rows(P, "probability")
    labels = _labels(y, P, P.shape[1])
    areas = [auroc(P[:, k], labels == k) for k in range(P.shape[1])]
    known = [area for area in areas if area == area]  # noqa: PLR0124
    return float(np.mean(known)) if known else nan


class Reliability(NamedTuple):
    """Bins of confidence: edges (a, b], rows, their mean confidence and accuracy (nan in an empty bin)."""

    edges: Floats
    rows: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats


def reliability(probs: ArrayLike, y: ArrayLike, bins: int = BINS) -> Reliability:
    """What a reliability diagram draws: decisions by their confidence, the largest probability of the row."""
    P, y, _ = _checked(probs, y)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    confidence = np.maximum(P, 1.0 - P) if P.ndim == 1 else P.max(axis=1)
    edges = np.arange(bins + 1) / bins
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    rows = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):  # 0 / 0 in an empty bin is nan, as promised
        return Reliability(
            edges,
            rows,
            np.bincount(place, confidence, bins) / rows,
            np.bincount(place, _decide(P) == y, bins) / rows,
        )


def ece(probs: ArrayLike, y: ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error: how far accuracy and confidence lie apart, bin by bin, weighted by rows.

    >>> round(ece([0.9, 0.8], [1, 1]), 3)
    0.15
    """
    _, rows, confidence, accuracy = reliability(probs, y, bins)
    full = rows > 0
    return float(np.sum(rows[full] * np.abs(accuracy[full] - confidence[full])) / rows.sum())


def roc_curve(scores: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """False and true positive rates from (0, 0) to (1, 1), one point a distinct score, highest first."""
    s = _scores(scores)
    positive = _labels(y, s, 2).astype(bool)
    if positive.all() or not positive.any():
        raise ValueError("a ROC curve needs rows of both classes")
    order = np.argsort(-s, kind="stable")
    last = np.append(np.flatnonzero(np.diff(s[order])), len(s) - 1)
    tp = np.cumsum(positive[order])[last]
    fp = last + 1 - tp
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])


def _area(P: Floats, y: NDArray[np.int64], scores: ArrayLike | None) -> tuple[float, str]:
    if P.ndim == 1:
        s = P if scores is None else links.reals(scores, "score")
        if s.shape != P.shape:
            raise ValueError(f"scores have shape {s.shape} where probabilities have {P.shape}")
        return auroc(s, y), "" if 0 < y.sum() < len(y) else f"all rows are of class {y[0]}"
    Z = np.log(np.clip(P, np.finfo(float).tiny, None)) if scores is None else _rows(scores, "score")
    if Z.shape != P.shape:
        raise ValueError(f"scores have shape {Z.shape} where probabilities have {P.shape}")
    area = auroc_ovo(Z, y)
    return area, "" if area == area else "not every class has a row"  # noqa: PLR0124


def _f1(decisions: NDArray[Any], y: NDArray[np.int64], K: int) -> float:
    scores = []
    for k in (1,) if K == 2 else range(K):
        said, true = decisions == k, y == k
        n = int(said.sum()) + int(true.sum())
        scores.append(2 * int((said & true).sum()) / n if n else 0.0)
    return float(np.mean(scores))


def _decide(P: Floats) -> NDArray[np.int64]:
    return (P >= 0.5).astype(np.int64) if P.ndim == 1 else P.argmax(axis=1)


def _checked(probs: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.int64], int]:
    P = links.reals(probs, "probability")
    if P.ndim not in (1, 2) or not P.size or P.shape[-1:] == (1,) * (P.ndim - 1):
        raise ValueError(
            f"probabilities have shape {P.shape}; (T,) or (T, K) with at least one row are taken"
        )
    outside = np.argwhere((P < 0.0) | (P > 1.0))
    if len(outside):
        row = tuple(outside[0])
        raise ValueError(f"probability of row {row[0]} is {P[row]}; it must lie in [0, 1]")
    K = 2 if P.ndim == 1 else P.shape[1]
    return P, _labels(y, P, K), K


def _labels(y: ArrayLike, rows: Floats, K: int) -> NDArray[np.int64]:
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        row = int(np.argwhere(np.ma.getmaskarray(y))[0][0])
        raise ValueError(f"label of row {row} is masked; drop or fill masked values first")
    labels = np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"labels have shape {labels.shape} for {len(rows)} rows")
    bad = np.flatnonzero(~np.isin(labels, np.arange(K)))
    if bad.size:
        wanted = "0 or 1" if K == 2 else f"a whole number from 0 to {K - 1}"
        raise ValueError(f"label of row {bad[0]} is {labels[bad[0]]!r}; it must be {wanted}")
    return labels.astype(np.int64)


def _scores(values: ArrayLike) -> Floats:
    s = links.reals(values, "score")
    if s.ndim != 1:
        raise ValueError(f"scores have shape {s.shape}; one number a row is taken, such as P[:, 1]")
    return s


def _rows(values: ArrayLike, what: str) -> Floats:
    Z = links.reals(values, what)
    if Z.ndim != 2 or Z.shape[1] < 2:
        raise ValueError(f"{what}s have shape {Z.shape}; one column a class is taken")
    return Z
