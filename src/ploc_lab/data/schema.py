"""A data set as data: where it comes from, what its columns are, the numbers that prove it is the one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ploc_lab.data.dataset import Dataset

Expected = float | tuple[float, float]


class WrongDataError(ValueError):
    """A file is here but is not the one: the message lists what differs."""

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.differences = list(differences) or [message]


class Table(NamedTuple):
    """A raw file after its task's own row filters: features as columns, and where each row belongs."""

    features: pl.DataFrame
    y: NDArray[np.bool_]
    ood: NDArray[np.bool_]
    time: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Columns:
    """Which columns a network sees, in the order of X: numeric, then one-hot, then passed through.

    `numeric` is standardised by the train rows, or with `binned` cut into five quantile bins (missing: -1).
    A category rarer than `min_frequency` of the train rows shares one last column of its block.
    """

    numeric: tuple[str, ...]
    onehot: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    binned: bool = False
    min_frequency: float = 0.0


@dataclass(frozen=True)
class Fingerprint:
    """Numbers that only the right file gives: each one exact, or a closed range where only that is published.

    >>> Fingerprint({"rows": 3, "rate train": (0.2, 0.3)}).differences({"rows": 4, "rate train": 0.25})
    ['rows: expected 3, found 4']
    """

    expected: Mapping[str, Expected]

    def differences(self, found: Mapping[str, float]) -> list[str]:
        """What differs between the expected numbers and those found, a sentence each."""
        lines = []
        for key, want in self.expected.items():
            got = found[key]
            low, high = want if isinstance(want, tuple) else (want, want)
            if not low <= got <= high:
                digits = 6 if f"{got:.6g}" not in (f"{low:.6g}", f"{high:.6g}") else 12
                ends = dict.fromkeys((_show(low, digits), _show(high, digits)))
                lines.append(f"{key}: expected {' to '.join(ends)}, found {_show(got, digits)}")
        return lines


def near(number: float) -> tuple[float, float]:
    """The range that another processor's rounding may move a sum in; another cell moves it out.

    >>> Fingerprint({"sum": near(1000)}).differences({"sum": 1000.00000001})
    []
    """
    return number * (1 - 1e-9), number * (1 + 1e-9)


def _show(number: float, digits: int) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.{digits}g}"


@dataclass(frozen=True)
class Download:
    """One file at an official address; `sha256` where the publisher's file does not change."""

    url: str
    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """Where the raw files come from, on what terms, and what a person must do where no program may."""

    page: str
    licence: str
    terms: str
    downloads: tuple[Download, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def form(self) -> bool:
        """Whether a person must ask for the file."""
        return not self.downloads and bool(self.steps)


@dataclass(frozen=True)
class Task:
    """One data set: `read` turns its raw files into a table, all else is the same code for every task."""

    name: str
    title: str
    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], Table]
    columns: Columns
    fingerprint: Fingerprint
    source: Source
    label: str
    domain: str
    time: str | None = None
    stand_in: str | None = None
    note: str = ""
    load: "Callable[..., Dataset] | None" = None
    fetch: Callable[[Path, Callable[[str], object]], list[Path]] | None = None

    @property
    def images(self) -> bool:
        """Whether its rows are images and not rows of a table: then `load` reads the files, not `read`."""
        return self.load is not None


def require(path: Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a file that lacks a column, naming all that it lacks."""
    missing = [name for name in wanted if name not in found]
    if missing:
        raise WrongDataError(
            f"{path} is not the expected file: it lacks the column(s) {', '.join(missing)}; "
            f"it has {len(found)}: {', '.join(found[:8])}{', ...' if len(found) > 8 else ''}"
        )
