"""Streams beyond those of the data room: sorted by the model's own score, or drifting between two domains.

Both are real rows by position, and neither needs a label.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SEGMENT = 2_000  # rows of each domain in a drifting stream, at most
OLD, NEW = "id_test", "ood_test"
KINDS = ("abrupt", "gradual", "recurring")

Index = NDArray[np.int64]


class Plan(NamedTuple):
    """Row t of a stream is row `rows[t]` of splits `pools`, end to end; a domain starts at each change."""

    pools: tuple[str, ...]
    rows: Index
    changes: tuple[int, ...] = ()


def ascending(scores: NDArray[Any]) -> Index:
    """Rows from the lowest score to the highest: the running mean's worst case, which no label is needed for.

    >>> ascending(np.array([0.3, -1.0, 2.0])).tolist()
    [1, 0, 2]
    """
    return np.argsort(scores, kind="stable").astype(np.int64)


def drifting(kind: str, n_old: int, n_new: int, seed: int, limit: int | None = None) -> Plan:
    """A stream that leaves the source's domain for the target's: at once, bit by bit, or by turns.

    Both domains give SEGMENT rows, or as many as the target has; one with fewer is drawn with replacement.

    >>> plan = drifting("recurring", 5000, 5000, seed=0)
    >>> len(plan.rows), plan.changes
    (4000, (1000, 2000, 3000))
    """
    if kind not in KINDS:
        raise ValueError(f"no drift is called {kind!r}; there are: {', '.join(KINDS)}")
    generator = np.random.default_rng((seed, KINDS.index(kind)))
    m = min(SEGMENT, n_new, (limit or 2 * SEGMENT) // 2) // 2 * 2
    if m < 2:
        raise ValueError(f"a drifting stream needs at least 4 rows, got {limit} of {n_new}")
    t = np.arange(2 * m)
    changes: tuple[int, ...]
    if kind == "abrupt":
        new, changes = t >= m, (m,)
    elif kind == "gradual":
        # flat, then a ramp of m rows, then flat; the change is timed from where the ramp ends
        new = generator.random(2 * m) < np.clip((t - m / 2) / m, 0.0, 1.0)
        changes = (m // 2 + m,)
    else:
        new, changes = (t // (m // 2)) % 2 == 1, (m // 2, m, m // 2 * 3)
    rows = np.empty(2 * m, dtype=np.int64)
    for here, size, start in ((~new, n_old, 0), (new, n_new, n_old)):
        count = int(here.sum())
        rows[here] = start + generator.choice(size, count, replace=count > size)
    return Plan((OLD, NEW), rows, changes)
