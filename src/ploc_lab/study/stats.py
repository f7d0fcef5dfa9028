"""Paired comparisons over the same checkpoints: Wilcoxon's signed ranks, Holm, effect size, counts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata, wilcoxon


class Paired(NamedTuple):
    """A paired comparison: mean difference and spread, how often it is positive, the test, the effect."""

    n: int
    mean: float
    sd: float
    positive: int
    negative: int
    zero: int
    p: float
    effect: float


def paired(ours: ArrayLike, theirs: ArrayLike) -> Paired:
    """Wilcoxon's two-sided signed-rank test of ours - theirs; pairs that are equal are dropped ("wilcox").

    The effect size is the matched-pairs rank-biserial correlation, from -1 to 1: the rank sum in favour minus
    the rank sum against, over all ranks. With no unequal pair p is 1 and the effect 0.

    >>> result = paired([3.0, 5.0, 4.0, 2.0], [1.0, 2.0, 5.0, 2.0])
    >>> result.positive, result.negative, result.zero, round(result.effect, 3)
    (2, 1, 1, 0.667)
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(f"a paired test needs two equal rows of numbers, got shapes {a.shape} and {b.shape}")
    d = a - b
    if not np.isfinite(d).all():
        raise ValueError(
            f"pair {int(np.flatnonzero(~np.isfinite(d))[0])} has no finite difference: drop or mend it"
        )
    moved = d[d != 0]
    if moved.size:
        ranks = rankdata(np.abs(moved))
        effect = float((ranks[moved > 0].sum() - ranks[moved < 0].sum()) / ranks.sum())
        p = float(wilcoxon(moved, zero_method="wilcox", alternative="two-sided").pvalue)
    else:
        effect, p = 0.0, 1.0
    sd = float(d.std(ddof=1)) if d.size > 1 else 0.0
    return Paired(
        d.size, float(d.mean()), sd, int((d > 0).sum()), int((d < 0).sum()), int((d == 0).sum()), p, effect
    )


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values of a family, in the order given.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, floor = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = floor
    return adjusted
