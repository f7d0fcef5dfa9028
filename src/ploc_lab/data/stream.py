"""A target stream: rows in one fixed order, and labels that only a finished prediction opens."""

from collections.abc import Callable
from typing import Any, Literal, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ploc_lab.data.encode import Index

Order = Literal["split", "time", "permuted"]
ORDERS: tuple[Order, ...] = ("split", "time", "permuted")
Labels = NDArray[np.int64]


class Pool(Protocol):
    """Rows by position, whatever they are made from: an encoded table, images."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Self: ...

    @property
    def d(self) -> int:
        """Width of X."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of X."""

    def rows(self, index: Index | None = None) -> NDArray[np.float32]:
        """Rows of X, (n, d) float32."""


class SealedError(RuntimeError):
    """Someone asked for a target label before the last prediction was made."""


class Stream:
    """Rows of `ood_test` in one order. `rows` is open to all, the labels to `open(predicted)` only.

    A stream can't be pickled: labels don't travel to another process by accident.
    """

    def __init__(
        self, name: str, table: Pool, labels: Callable[[], Labels], index: NDArray[np.int64], order: str
    ) -> None:
        self.name = name
        self.order = order
        self.index = index
        self._table = table

        # The labels live in this function's closure, not in an attribute that a method could stumble over.
        def reveal() -> Labels:
            return labels()[index]

        self._reveal = reveal

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, rows={len(self)}, order={self.order!r}, labels sealed)"

    def rows(self, index: Index | None = None) -> NDArray[np.float32]:
        """Rows of X in stream order: all, a slice or given positions of the stream, (n, d) float32."""
        return self._table.rows(self.index if index is None else self.index[index])

    @property
    def y(self) -> NoReturn:
        """Never there: see `open`."""
        raise sealed(self.name)

    def open(self, predicted: ArrayLike | None = None) -> Labels:
        """The labels in stream order, for one finite prediction a row: the evaluation's call alone."""
        answers: NDArray[Any] = np.asarray(predicted)
        if answers.dtype.kind not in "fiub" or answers.ndim not in (1, 2) or len(answers) != len(self):
            raise SealedError(
                f"labels of {self.name!r} open for one prediction a row: expected {len(self)} rows of "
                f"numbers, got shape {answers.shape} of {answers.dtype}"
            )
        bad = ~np.isfinite(answers.reshape(len(answers), -1)).all(axis=1)
        if bad.any():
            raise SealedError(
                f"labels of {self.name!r} open for finite predictions: row {int(bad.argmax())} is "
                f"{answers[bad.argmax()]}"
            )
        return self._reveal()


def sealed(name: str) -> SealedError:
    """The refusal that every door to a target label gives."""
    return SealedError(
        f"target labels of {name!r} are sealed: predict the whole stream, then the evaluation calls "
        "stream.open(predicted)"
    )


def resample(
    y: Labels, positive_rate: float, seed: int, limit: int | None, *, replace: bool
) -> NDArray[np.int64]:
    """Positions with the given share of positives in random order: a controlled prior shift.

    Without replacement the length is the longest that the rarer class allows; with it, that of `y`.
    """
    if not 0 < positive_rate < 1:
        raise ValueError(f"positive_rate must lie strictly between 0 and 1, got {positive_rate}")
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    longest = min(len(positive) / positive_rate, len(negative) / (1 - positive_rate))
    n = len(y) if replace else int(longest + 1e-9)
    n = n if limit is None else min(n, limit)
    hits = round(n * positive_rate)
    rng = np.random.default_rng(seed)
    drawn = [
        rng.choice(positive, min(hits, n if replace else len(positive)), replace=replace),
        rng.choice(negative, min(n - hits, n if replace else len(negative)), replace=replace),
    ]
    return rng.permutation(np.concatenate(drawn)).astype(np.int64)
