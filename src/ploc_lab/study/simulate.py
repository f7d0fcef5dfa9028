"""Proposition 3 by simulation: the variance of each origin estimate on a stationary stream of unit noise."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ploc import PLOC, origin

ROWS = 400
REPEATS = 400
LEVEL = 0.7  # where the simulated logits sit; an unbiased estimate must not depend on it

ORIGINS: Mapping[str, Callable[[], origin.Origin]] = {
    "ploc": origin.Mean,
    "ploc_ema01": lambda: origin.EMA(0.01),
    "ploc_ema20": lambda: origin.EMA(0.2),
    "ploc_window100": lambda: origin.Window(100),
    "ploc_huber": lambda: origin.Huber(2.5),
    "ploc_median": origin.Median,
}


def variance(method: str, seed: int) -> dict[str, float | None]:
    """The estimate's measured variance and bias after ROWS rows, beside the variance its weights promise."""
    generator = np.random.default_rng((3, seed))
    ends = np.empty(REPEATS)
    for r in range(REPEATS):
        center = PLOC(origin=ORIGINS[method]())
        center.observe(LEVEL + generator.standard_normal(ROWS))
        ends[r] = float(np.asarray(center.shift))
    w = weights(method)
    return {
        "variance": float(np.mean((ends - LEVEL) ** 2)),
        "bias": float(np.mean(ends) - LEVEL),
        "variance_promised": None if w is None else float(np.sum(w**2)),
        "variance_least": 1 / ROWS,
    }


def weights(method: str) -> NDArray[np.float64] | None:
    """What a linear estimate gives each of ROWS logits, the oldest first; None where it isn't linear.

    >>> round(float(weights("ploc_window100").sum()), 12)
    1.0
    """
    age = np.arange(ROWS - 1, -1, -1)
    if method == "ploc":
        return np.full(ROWS, 1 / ROWS)
    if method == "ploc_window100":
        return np.where(age < 100, 1 / min(100, ROWS), 0.0)
    if method in {"ploc_ema01", "ploc_ema20"}:
        alpha = 0.01 if method == "ploc_ema01" else 0.2
        first: NDArray[np.float64] = (1 - alpha) ** age.astype(np.float64)
        return first * np.where(age == ROWS - 1, 1.0, alpha)
    return None
