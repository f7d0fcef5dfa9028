"""A loaded data set: five parts of one encoded table, source labels open, target labels sealed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ploc_lab.data.encode import Index
from ploc_lab.data.schema import Task
from ploc_lab.data.splits import NAMES, SOURCE
from ploc_lab.data.stream import ORDERS, Labels, Order, Pool, Stream, resample, sealed


class Part:
    """The rows of one split, in split order; `y` raises `SealedError` for a part of the target."""

    def __init__(self, name: str, split: str, table: Pool, y: Labels | None) -> None:
        self.name = name
        self.split = split
        self._table = table
        self._y = y

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"Part({self.name!r}, {self.split!r}, rows={len(self)})"

    def rows(self, index: Index | None = None) -> NDArray[np.float32]:
        """Rows of X, (n, d) float32: all, a slice or given positions."""
        return self._table.rows(index)

    @property
    def y(self) -> Labels:
        """The labels of a source part, int64."""
        if self._y is None:
            raise sealed(self.name)
        return self._y


class Dataset:
    """One data set, encoded: `part(split)` to train and validate on, `stream(order)` to be met once."""

    def __init__(self, task: Task, table: Pool, arrays: Mapping[str, NDArray[Any]], digest: str) -> None:
        self.task = task
        self.name = task.name
        self.title = task.title
        self.stand_in = task.stand_in
        self.time = task.time
        self.d = table.d
        self.columns = table.columns
        self.fingerprint = digest
        self.splits = NAMES
        self._table = table
        ends = np.cumsum(arrays["sizes"])
        self._where = {
            name: slice(int(end - size), int(end))
            for name, end, size in zip(NAMES, ends, arrays["sizes"], strict=True)
        }
        y = arrays["y"].astype(np.int64)
        self._source_y = {name: y[self._where[name]] for name in SOURCE}
        target = y[self._where["ood_test"]]

        def labels() -> Labels:
            return target

        self._labels = labels
        self._position = arrays["position"]
        self._time_order = arrays["time_order"]
        train = self._source_y["train"]
        rate = float(train.mean())
        self.prior = np.array([1 - rate, rate])
        if train.max() > 1:
            self.prior = np.bincount(train) / len(train)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, rows={len(self)}, d={self.d})"

    def part(self, split: str) -> Part:
        """One of the five parts."""
        if split not in self._where:
            raise ValueError(f"no split is called {split!r}; there are: {', '.join(self.splits)}")
        return Part(self.name, split, self._table[self._where[split]], self._source_y.get(split))

    def positions(self, split: str) -> NDArray[np.int64]:
        """Where the rows of a part stand in the raw file after the row filters."""
        part: NDArray[np.int64] = self._position[self._where[split]].astype(np.int64)
        return part

    def stream(
        self,
        order: Order = "split",
        seed: int = 0,
        limit: int | None = None,
        *,
        positive_rate: float | None = None,
        replace: bool = False,
    ) -> Stream:
        """The rows of `ood_test` in one order, at most `limit` of them.

        "split" is the splitter's own order; "time" sorts by `self.time`, or by raw row where there is no such
        column; "permuted" shuffles by `seed`. With `positive_rate` the stream is drawn to that share of
        positives (a controlled prior shift), with `replace` as a bootstrap; its order is "permuted".
        """
        if order not in ORDERS:
            raise ValueError(f"no order is called {order!r}; there are: {', '.join(ORDERS)}")
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1 row, got {limit}")
        table = self._table[self._where["ood_test"]]
        if positive_rate is not None:
            if order != "permuted":
                raise ValueError(
                    f"a positive_rate is drawn at random: order must be 'permuted', got {order!r}"
                )
            index = resample(self._labels(), positive_rate, seed, limit, replace=replace)
            return Stream(self.name, table, self._labels, index, order)
        index = np.arange(len(table))
        if order == "time":
            index = self._time_order.astype(np.int64)
        elif order == "permuted":
            index = np.random.default_rng(seed).permutation(len(table))
        return Stream(self.name, table, self._labels, index[:limit], order)
