"""The evaluation: the only place where labels of a target stream are opened, after the last prediction."""

import json
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ploc import deferred, links, metrics, theory
from ploc_lab.methods import Answer

Floats = NDArray[np.float64]
Row = dict[str, Any]

METRICS = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece", "nll", "brier")
AFTER = 200  # rows after a change over which a drifting stream is judged
SMOOTH = 50  # rows that a recovery is averaged over


class Sealed(Protocol):
    """The part of a stream that the evaluation needs."""

    def open(self, predicted: Any, /) -> NDArray[Any]:
        """The labels, for one prediction per row."""


def open_labels(stream: Sealed, answers: Sequence[Answer]) -> NDArray[Any]:
    """The labels of a stream, once every checkpoint's answer has a prediction for every row."""
    if not answers:
        raise ValueError("no answers were given: labels are opened only for finished predictions")
    labels = [np.asarray(stream.open(answer.probs)) for answer in answers]
    return labels[0]


def measure(answer: Answer, y: NDArray[Any]) -> Row:
    """The seven metrics, AUROC from the scores before any sigmoid; what is undefined is None, and why."""
    m = metrics.evaluate(answer.probs, y, scores=answer.scores)
    row: Row = {name: _number(getattr(m, name)) for name in METRICS}
    row["undefined"] = json.dumps(dict(m.undefined)) if m.undefined else None
    if answer.probs.ndim == 1:
        row["base_rate"] = float(np.mean(y == 1))
        row["positive_rate"] = float(np.mean(answer.probs >= 0.5))
    return row


def oracle_shift(z: Floats, y: NDArray[Any]) -> float:
    """The one shift b that minimises the NLL of sigmoid(z - b); it uses labels: a reference, not a method.

    At the minimum the mean probability equals the rate of positives, and the mean falls with b: bisection
    to the last bit.

    >>> z = np.array([0.0, 2.0])
    >>> oracle_shift(z, np.array([0, 1]))
    1.0
    """
    rate = float(np.mean(y == 1))
    if not 0 < rate < 1:
        raise ValueError(f"the oracle shift is not finite on a stream with a positive rate of {rate}")
    low, high = float(np.min(z)) - 50.0, float(np.max(z)) + 50.0
    while True:
        middle = (low + high) / 2
        if middle in {low, high}:
            return middle
        gap = float(np.mean(links.sigmoid(z - middle))) - rate
        if gap == 0:
            return middle
        low, high = (middle, high) if gap > 0 else (low, middle)


def propositions(z: Floats, y: NDArray[Any]) -> Row:
    """Propositions 1 and 2 on one stream: rows that deferred PLOC reorders, PLOC's drift and its bound."""
    probs, mu = deferred(z)
    ranks = rankdata(z)
    bound = theory.drift_bound(z, y)
    pairs = float(np.sum(y == 1)) * float(np.sum(y == 0))
    return {
        "rank_changes": int(np.sum(rankdata(z - mu) != ranks)),
        "rank_changes_sigmoid": int(np.sum(rankdata(probs) != ranks)),
        "auroc_source": metrics.auroc(z, y),
        "auroc_deferred": metrics.auroc(z - mu, y),
        "auroc_ploc": float(bound.auroc_ploc),
        "drift": abs(float(bound.auroc_ploc) - float(bound.auroc_source)),
        "drift_bound": float(bound.bound),
        "drift_pairs": float(bound.pairs),
        "all_pairs": pairs,
    }


def recovery(
    answer: Answer, z: Floats, y: NDArray[Any], changes: Sequence[int], new: NDArray[np.bool_]
) -> Row:
    """How an origin follows a stream's changes: rows until it is within a tenth of the way of the next mean.

    `new` marks the rows of the second domain; the way is from the mean logit of the domain that is left
    to that of the one that comes, read off the centred logits and averaged over SMOOTH rows. A change that
    the origin does not follow in its segment is missing in `recovery_rows` and in the share `recovered`;
    where the mean logits agree, as a network's that answers one number do, both are undefined.
    """
    shift = z - answer.scores
    edges = [0, *changes, len(z)]
    means = float(np.mean(z[~new])), float(np.mean(z[new]))
    rows: list[int] = []
    moves = means[0] != means[1]
    for k, start in enumerate(changes if moves else ()):
        left, reached = means[k % 2], means[(k + 1) % 2]
        way = (shift[start : edges[k + 2]] - left) / (reached - left)
        if len(way) < SMOOTH:
            continue
        smooth = np.convolve(way, np.full(SMOOTH, 1 / SMOOTH), mode="valid")
        there = np.flatnonzero(np.abs(smooth - 1.0) <= 0.1)
        if len(there):
            rows.append(int(there[0]))
    after = np.concatenate([np.arange(c, min(c + AFTER, len(z))) for c in changes])
    late = measure(Answer(answer.probs[after], answer.scores[after]), y[after])
    return {
        "recovery_rows": float(np.mean(rows)) if rows else None,
        "recovered": len(rows) / len(changes) if moves else None,
        **{f"after_{name}": late[name] for name in ("accuracy", "balanced_accuracy", "ece", "nll")},
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
