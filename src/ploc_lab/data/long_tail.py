"""A long-tailed stream: rows drawn so that classes thin out exponentially, in the order of their numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sizes(rarest: int, classes: int, rho: float) -> list[int]:
    """Rows of each class: the first has as many as every class can give, the last `rho` times fewer.

    >>> sizes(1000, 10, 10)
    [1000, 774, 599, 464, 359, 278, 215, 166, 129, 100]
    """
    if not rho >= 1:
        raise ValueError(f"rho, the first class over the last, must be 1 or more, got {rho}")
    # 1000 * 100 ** -1 is 9.999... in doubles, so a whole number may be missed by the last bit.
    return [int(rarest * rho ** (-k / (classes - 1)) + 1e-9) for k in range(classes)]


def draw(y: NDArray[np.integer[Any]], rho: float, seed: int) -> NDArray[np.int64]:
    """Positions of a long-tailed sample without replacement, shuffled, by the seed."""
    counts = np.bincount(y)
    if len(counts) < 2 or not counts.all():
        raise ValueError(f"a long tail needs rows of every class, there are {counts.tolist()}")
    generator = np.random.default_rng(seed)
    kept = [
        generator.choice(np.flatnonzero(y == k), n, replace=False)
        for k, n in enumerate(sizes(int(counts.min()), len(counts), rho))
    ]
    return generator.permutation(np.concatenate(kept)).astype(np.int64)
