"""What is measured of an answer over K classes besides the seven metrics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ploc import metrics


def measure(probs: NDArray[np.float64], y: NDArray[Any]) -> dict[str, float | int | None]:
    """One-vs-rest AUROC of the probabilities, which centring may move; the answers' variety and certainty.

    `top_class` is answered most, on a `top_share` of the rows; `entropy_least` is that of the surest row, in
    nats: methods that learn from rows below a margin learn nothing where it lies above.

    >>> found = measure(np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([0, 1]))
    >>> found["auroc_ovr"], found["top_class"], found["top_share"], round(found["entropy_least"], 3)
    (0.0, 0, 1.0, 0.562)
    """
    area = metrics.auroc_ovr(probs, y)
    answered = np.bincount(probs.argmax(axis=1), minlength=probs.shape[1])
    surprise = -np.log(np.where(probs > 0, probs, 1.0))
    return {
        "auroc_ovr": None if np.isnan(area) else area,
        "top_class": int(answered.argmax()),
        "top_share": float(answered.max() / len(probs)),
        "entropy_least": float((probs * surprise).sum(axis=1).min()),
    }
