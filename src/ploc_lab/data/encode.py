"""A table as small integers and a thin float block, made into the network's float32 rows when asked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ploc_lab.data.schema import Columns, WrongDataError

BINS = 5
Index = slice | NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Encoded:
    """Rows of X without their zeros: numerics, one small code a one-hot block, columns passed through."""

    numeric: NDArray[np.float32]
    codes: NDArray[np.uint8] | NDArray[np.uint16]
    passthrough: NDArray[np.float32]
    widths: NDArray[np.int64]
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def d(self) -> int:
        """Width of X."""
        return len(self.columns)

    def __getitem__(self, part: slice) -> "Encoded":
        return Encoded(
            self.numeric[part], self.codes[part], self.passthrough[part], self.widths, self.columns
        )

    def rows(self, index: Index | None = None) -> NDArray[np.float32]:
        """Rows of X as the network sees them: (n, d) float32, assembled now."""
        index = slice(None) if index is None else index
        if not isinstance(index, slice) and np.ndim(index) != 1:
            raise TypeError(
                f"rows takes a slice or an array of positions, got {index!r}; one row is [i] or i:i+1"
            )
        numeric = self.numeric[index]
        out = np.zeros((len(numeric), self.d), dtype=np.float32)
        first = numeric.shape[1]
        out[:, :first] = numeric
        # The single 1 of every block of every row, by its place in the flat array.
        starts = first + np.cumsum(self.widths) - self.widths
        at = np.arange(0, out.size, self.d)[:, None]
        out.reshape(-1)[at + starts + self.codes[index]] = 1.0
        out[:, self.d - self.passthrough.shape[1] :] = self.passthrough[index]
        return out


def encode(
    table: pl.DataFrame, columns: Columns, train: NDArray[np.int64], order: NDArray[np.int64]
) -> Encoded:
    """Fit on the train rows, encode all rows, and lay them in `order`.

    The list of categories is taken from all rows, as the benchmark does: names of categories, no more than
    that, are seen before the stream. It fixes the width of X.
    """
    numeric = np.empty((len(order), len(columns.numeric)), dtype=np.float32)
    fit = _bins if columns.binned else _standard
    for j, name in enumerate(columns.numeric):
        values = _numbers(table[name], missing=columns.binned)
        numeric[:, j] = fit(values, train)[order]

    names, widths, blocks = list(columns.numeric), [], []
    for name in columns.onehot:
        code, kept = _codes(table[name], train, columns.min_frequency)
        blocks.append(code[order])
        widths.append(len(kept))
        names += [f"{name}={value}" for value in kept]
    kind = np.uint8 if max(widths, default=0) <= 256 else np.uint16
    codes = np.empty((len(order), len(blocks)), dtype=kind)
    for j, block in enumerate(blocks):
        codes[:, j] = block

    passthrough = np.empty((len(order), len(columns.passthrough)), dtype=np.float32)
    for j, name in enumerate(columns.passthrough):
        passthrough[:, j] = _numbers(table[name], missing=False)[order]
    names += columns.passthrough
    return Encoded(numeric, codes, passthrough, np.array(widths, dtype=np.int64), tuple(names))


def _numbers(column: pl.Series, *, missing: bool) -> NDArray[np.float64]:
    """A column as float64, missing as NaN, or an error that says which row is missing."""
    # The benchmark halves its 64-bit numbers before it fits: floats lose digits there, integers don't.
    narrow = column.cast(pl.Float32) if column.dtype.is_float() else column
    values: NDArray[np.float64] = narrow.cast(pl.Float64).to_numpy()
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        raise WrongDataError(
            f"column {column.name}: {int(bad.sum())} value(s) are missing or infinite, "
            f"first in row {int(bad.argmax())} of the filtered table"
        )
    return values


def _standard(values: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean 0 and population standard deviation 1 on the train rows; a constant column is only centred."""
    mean, scale = float(values[train].mean()), float(values[train].std())
    constant = scale <= 10 * np.finfo(np.float64).eps * max(1.0, abs(mean))
    return (values - mean) / (1.0 if constant else scale)


def _bins(values: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Index of the train quantile bin (0 to 4), empty bins merged into their neighbour; -1 where missing."""
    known = values[train][~np.isnan(values[train])]
    if len(known) == 0:
        return np.where(np.isnan(values), -1.0, 0.0)
    edges: NDArray[np.float64] = np.percentile(known, np.linspace(0, 100, BINS + 1))
    inner = edges[np.diff(edges, prepend=-np.inf) > 1e-8][1:-1]
    found = np.searchsorted(inner, values, side="right").astype(np.float64)
    return np.where(np.isnan(values), -1.0, found)


def _codes(
    column: pl.Series, train: NDArray[np.int64], min_frequency: float
) -> tuple[NDArray[np.int64], list[str]]:
    """Codes in order of first appearance; a category rarer than the floor shares the last code."""
    text = column.cast(pl.String).fill_null("nan")
    seen = text.unique(maintain_order=True)
    code = text.cast(pl.Enum(seen)).to_physical().to_numpy().astype(np.int64)
    kept = np.ones(len(seen), dtype=bool)
    if min_frequency:
        kept = np.bincount(code[train], minlength=len(seen)) >= min_frequency * len(train)
    names = [name for name, keep in zip(seen.to_list(), kept, strict=True) if keep]
    if kept.all():
        return code, names
    return np.where(kept, np.cumsum(kept) - 1, len(names))[code], [*names, "infrequent"]
