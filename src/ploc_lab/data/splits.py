"""The benchmark's domain split: source rows in three parts, target rows in two, always by the same seed."""

import numpy as np
from numpy.typing import NDArray

SEED = 264738
NAMES = ("train", "validation", "id_test", "ood_validation", "ood_test")
SOURCE = NAMES[:3]


class TooFewRowsError(ValueError):
    """A domain has too few rows to be cut into parts."""


def split(ood: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
    """Cut rows by domain, 80/10/10 of the source and 10/90 of the target; a part's order is the stream's.

    The cuts are scikit-learn's `train_test_split` with the seed of TableShift, shuffled and not stratified.

    >>> parts = split(np.arange(100) >= 60)
    >>> {name: len(rows) for name, rows in parts.items()}
    {'train': 48, 'validation': 6, 'id_test': 6, 'ood_validation': 4, 'ood_test': 36}
    """
    from sklearn.model_selection import train_test_split  # noqa: PLC0415 - a second that a cached table saves

    source, target = np.flatnonzero(~ood), np.flatnonzero(ood)
    if len(source) < 10 or len(target) < 2:
        raise TooFewRowsError(
            f"too few rows to split: {len(source)} in the source, {len(target)} in the target"
        )
    train, rest = train_test_split(source, test_size=0.2, random_state=SEED)
    validation, id_test = train_test_split(rest, test_size=0.5, random_state=SEED)
    ood_test, ood_validation = train_test_split(target, test_size=0.1, random_state=SEED)
    return dict(zip(NAMES, (train, validation, id_test, ood_validation, ood_test), strict=True))
