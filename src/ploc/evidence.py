"""Does it help? Two answers to the same rows, with paired bootstrap intervals and a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np

from ploc import links, metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "auroc": "AUROC",
    "ece": "ECE",
    "nll": "NLL",
    "brier": "Brier score",
}
LOWER_IS_BETTER = frozenset({"ece", "nll", "brier"})
DECIDING = ("accuracy", "nll")
"""What the verdict looks at: the decisions, and the probabilities by a proper score."""
LEVEL, DECIDING_LEVEL = 0.95, 0.975
"""Two deciding intervals at 97.5 % hold together at 95 % (Bonferroni)."""
ENOUGH = 20
"""Rows of each class below which no verdict is given: a bootstrap of fewer says little."""


@dataclass(frozen=True)
class Contrast:
    """One metric before and after, and what the resampled streams made of it."""

    name: str
    before: float
    after: float
    draws: NDArray[np.float64] = field(repr=False)  # (2, replicates)

    @property
    def change(self) -> float:
        """After less before."""
        return self.after - self.before

    def interval(self, of: Literal["before", "after", "change"], level: float = LEVEL) -> tuple[float, float]:
        """The basic bootstrap interval, which takes the bootstrap's own bias out (it matters for ECE)."""
        draws = {"before": self.draws[0], "after": self.draws[1], "change": self.draws[1] - self.draws[0]}[of]
        value = getattr(self, of)
        draws = draws[np.isfinite(draws)]
        if not isfinite(value) or not len(draws):
            return float("nan"), float("nan")
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        ends = 2 * value - high, 2 * value - low
        if of == "change":
            return float(ends[0]), float(ends[1])
        top = np.inf if self.name == "nll" else 1.0
        return float(np.clip(ends[0], 0, top)), float(np.clip(ends[1], 0, top))

    def better(self, level: float = LEVEL) -> int:
        """1 if the change is for the better beyond doubt at this level, -1 if for the worse, else 0."""
        low, high = self.interval("change", level)
        sign = (low > 0) - (high < 0)
        return -sign if self.name in LOWER_IS_BETTER else sign


@dataclass(frozen=True)
class Verdict:
    """Helps, hurts, or no evidence; and the sentence that says why."""

    word: Literal["helps", "hurts", "no evidence"]
    why: str


@dataclass(frozen=True)
class Evidence:
    """All metrics of two answers to one labelled stream; `groups` holds each group's accuracy."""

    metrics: dict[str, Contrast]
    groups: dict[str, Contrast]
    positives: int
    negatives: int
    replicates: int
    block: int

    @property
    def verdict(self) -> Verdict:
        """Helps if a deciding metric is better beyond doubt and none is worse; hurts the other way round."""
        if min(self.positives, self.negatives) < ENOUGH:
            rows = f"{self.positives:,} positive and {self.negatives:,} negative rows"
            return Verdict("no evidence", f"{rows} are too few; {ENOUGH} of each class are asked for.")
        signs = {name: self.metrics[name].better(DECIDING_LEVEL) for name in DECIDING}
        said = [self._said(name, sign) for name, sign in signs.items()]
        why = f"{said[0]}, {'but' if {*signs.values()} == {1, -1} else 'and'} {said[1]}."
        if 1 in signs.values() and -1 not in signs.values():
            return Verdict("helps", why)
        if -1 in signs.values() and 1 not in signs.values():
            return Verdict("hurts", why)
        return Verdict("no evidence", why)

    def _said(self, name: str, sign: int) -> str:
        contrast = self.metrics[name]
        low, high = contrast.interval("change", DECIDING_LEVEL)
        lower = name in LOWER_IS_BETTER
        verb = {1: "falls" if lower else "rises", -1: "rises" if lower else "falls", 0: "moves"}[sign]
        doubt = "" if sign else ", which may be chance"
        change = (
            f"{signed(contrast.change)}; {100 * DECIDING_LEVEL:g}% interval {signed(low)} to {signed(high)}"
        )
        return f"{NAMES[name]} {verb} from {contrast.before:.3f} to {contrast.after:.3f} ({change}{doubt})"


def weigh(
    before: ArrayLike,
    after: ArrayLike,
    y: ArrayLike,
    groups: Sequence[str] | None = None,
    *,
    replicates: int | None = None,
    seed: int = 0,
) -> Evidence:
    """Weigh two answers, given as relative logits, against the labels of the same rows in stream order.

    Both answers are resampled together, in circular blocks of T^(1/3) neighbouring rows, so that rows that
    lean on their neighbours do not count as independent. What PLOC answered is taken as it was: the origin's
    path is not drawn anew. `replicates` defaults to 1,000, fewer (at least 200) beyond 25,000 rows.

    >>> z = np.linspace(-3.0, 1.0, 400)
    >>> weigh(z, z + 1.0, z > -1.0).verdict.word
    'helps'
    """
    scores = [links.reals(before), links.reals(after)]
    probs = [links.sigmoid(s) for s in scores]
    points = [metrics.evaluate(p, y, s).asdict() for p, s in zip(probs, scores, strict=True)]
    labels = np.asarray(y).astype(np.int64)
    rows = len(labels)
    replicates = replicates or int(np.clip(2.5e7 / rows, 200, 1000))
    block = max(1, round(rows ** (1 / 3)))
    names = sorted(set(groups)) if groups is not None else []
    member = np.array([names.index(g) for g in groups]) if groups is not None else np.zeros(0, dtype=int)

    sums = [_Sums(p, s, labels) for p, s in zip(probs, scores, strict=True)]
    inside = np.eye(len(names))[member] if names else np.zeros((rows, 0))
    columns = np.hstack([*(s.columns for s in sums), inside, *(inside * s.hit[:, None] for s in sums)])
    width, many = sums[0].columns.shape[1], len(names)
    rng = np.random.default_rng(seed)
    draws = np.empty((2, len(NAMES), replicates))
    shares = np.empty((2, many, replicates))
    for k in range(replicates):
        weights = _block_weights(rng, rows, block)
        total = weights @ columns
        for i, s in enumerate(sums):
            draws[i, :, k] = s.metrics(total[i * width : (i + 1) * width], weights)
        size = total[2 * width : 2 * width + many]
        with np.errstate(invalid="ignore"):  # a group that a replicate missed says nothing there
            for i in range(2):
                start = 2 * width + (1 + i) * many
                shares[i, :, k] = total[start : start + many] / size
    return Evidence(
        {name: Contrast(name, points[0][name], points[1][name], draws[:, j]) for j, name in enumerate(NAMES)},
        {
            name: Contrast(
                "accuracy",
                float(sums[0].hit[member == g].mean()),
                float(sums[1].hit[member == g].mean()),
                shares[:, g],
            )
            for g, name in enumerate(names)
        },
        int(labels.sum()),
        int(rows - labels.sum()),
        replicates,
        block,
    )


def signed(value: float, digits: int = 3) -> str:
    """A change as people read it.

    >>> signed(0.5), signed(-0.0001)
    ('+0.500', '0.000')
    """
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else f"{0:.{digits}f}"


class _Sums:
    """One answer's metrics as functions of row weights: ratios of weighted sums; AUROC goes by ranks."""

    def __init__(self, probs: Floats, scores: Floats, y: NDArray[np.int64]) -> None:
        said = probs >= 0.5
        self.hit = (said == (y == 1)).astype(np.float64)
        confidence = np.maximum(probs, 1 - probs)
        edges = np.arange(metrics.BINS + 1) / metrics.BINS
        place = np.searchsorted(edges, confidence, side="left") - 1
        gap = np.zeros((len(y), metrics.BINS))
        gap[np.arange(len(y)), place] = self.hit - confidence
        taken = np.clip(np.where(y == 1, probs, 1 - probs), metrics.CLIP, 1 - metrics.CLIP)
        basics = [y == 1, said, self.hit * (y == 1), -np.log(taken), (probs - y) ** 2, self.hit]
        self.columns = np.hstack([np.column_stack(basics).astype(np.float64), gap])
        self.order = np.argsort(scores, kind="stable")
        self.positive = (y == 1)[self.order].astype(np.float64)
        self.starts = np.flatnonzero(np.diff(scores[self.order], prepend=-np.inf) > 0)

    def metrics(self, total: Floats, weights: Floats) -> list[float]:
        """In the order of `NAMES`."""
        rows = weights.sum()
        positives, said, caught, nll, brier, hits = total[:6]
        negatives = rows - positives
        w = weights[self.order]
        up = np.add.reduceat(w * self.positive, self.starts)
        down = np.add.reduceat(w * (1 - self.positive), self.starts)
        below = np.cumsum(down) - down
        with np.errstate(invalid="ignore", divide="ignore"):  # a replicate of one class has no such metric
            return [
                hits / rows,
                (caught / positives + (hits - caught) / negatives) / 2,
                2 * caught / (said + positives) if said + positives else 0.0,
                float(up @ (below + down / 2)) / (positives * negatives),
                float(np.abs(total[6:]).sum()) / rows,
                nll / rows,
                brier / rows,
            ]


def _block_weights(rng: np.random.Generator, rows: int, block: int) -> Floats:
    """How often each row comes in a stream of circular blocks: the last one is cut to make `rows` in all."""
    starts = rng.integers(0, rows, -(-rows // block))
    turns = np.zeros(2 * rows + 1)
    ends = starts + block
    ends[-1] -= len(starts) * block - rows
    np.add.at(turns, starts, 1)
    np.subtract.at(turns, ends, 1)
    weights = np.cumsum(turns[:-1])
    return weights[:rows] + weights[rows:]
