"""What is measured of an answer over K classes besides the seven metrics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ploc import metrics


def measure(probs: NDArray[np.float64], y: NDArray[Any]) -> dict[str, float | int | None]:
    """One-vs-rest AUROC of the probabilities, which centring may move, and the class that is answered most.

    >>> measure(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]))
    {'auroc_ovr': 1.0, 'top_class': 0, 'top_share': 1.0}
    """
    area = metrics.auroc_ovr(probs, y)
    answered = np.bincount(probs.argmax(axis=1), minlength=probs.shape[1])
    return {
        "auroc_ovr": None if np.isnan(area) else area,
        "top_class": int(answered.argmax()),
        "top_share": float(answered.max() / len(probs)),
    }
