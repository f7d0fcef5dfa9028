"""The result store: one parquet file a cell, written whole or not at all."""

import io
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from ploc_lab import files

LATEST = sys.maxsize  # newer than any file: what counts
_log = logging.getLogger(__name__)


class Store:
    """A folder of cells by key. A file that is there is whole: it was written beside, synced, renamed.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.write("k", pl.DataFrame({"id": ["a"], "dataset": ["heloc"], "seed": [0]}))
    >>> store.has("k"), store.read("k").height
    (True, 1)
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root).absolute()  # workers may run in another folder
        self._said: set[str] = set()

    def path(self, key: str) -> Path:
        """Where a cell's file is, or will be."""
        return self.root / f"{key}.parquet"

    def has(self, key: str) -> bool:
        """Whether the cell is done."""
        return self.path(key).exists()

    def keys(self) -> set[str]:
        """All cells that are done."""
        return {path.stem for path in self.root.glob("*.parquet")}

    def questions(self) -> set[str]:
        """The ids of all questions that some cell answers."""
        return {str(rows["id"][0]) for _, rows in self._readable()}

    def read(self, key: str) -> pl.DataFrame:
        """The rows of a cell, one a seed."""
        return pl.read_parquet(self.path(key))

    def write(self, key: str, rows: pl.DataFrame) -> None:
        """Store a cell; on any failure the folder is as it was."""
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        replace_file(self.path(key), buffer.getvalue())

    def sweep(self) -> int:
        """Remove cells that can't be read and what dead writers left half-written; how many files."""
        damaged = self.keys() - {key for key, _ in self._readable()}
        for key in damaged:
            self.path(key).unlink(missing_ok=True)
        self._said -= damaged
        return len(damaged) + files.sweep(self.root)

    def gather(self, current: Mapping[str, str] | None = None) -> pl.DataFrame:
        """All cells in one frame, one row per cell and seed, in an order of their own.

        A question may have been answered under several keys (older code, other data): `current` maps a cell's
        id to the key that counts, and those cells come first. Of the others the latest counts; they follow
        from the newest to the oldest, so that the first of two like rows is the one to keep.
        """
        counts = current or {}
        newest: dict[str, tuple[int, str, pl.DataFrame]] = {}
        for key, rows in self._readable():
            cell = rows["id"][0]
            if cell in counts:
                if counts[cell] == key:
                    newest[cell] = (LATEST, key, rows)
                continue
            entry = (self.path(key).stat().st_mtime_ns, key, rows)
            if cell not in newest or newest[cell][:2] < entry[:2]:
                newest[cell] = entry
        if not newest:
            return pl.DataFrame()
        frames = [
            rows.with_columns(pl.lit(key).alias("key"), pl.lit(-time if counts else 0).alias("age"))
            for time, key, rows in newest.values()
        ]
        return _sorted(pl.concat(frames, how="diagonal_relaxed")).drop("age")

    def _readable(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every cell that can be read, by key; one that can't be counts as absent and is said once."""
        for key in sorted(self.keys()):
            try:
                yield key, self.read(key)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                if key not in self._said:
                    why = str(error).partition("\n")[0]
                    _log.warning("cell %s can't be read (%s); the next run does it anew", self.path(key), why)
                    self._said.add(key)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part, whatever dies."""
    with files.whole(path) as temporary:
        temporary.write_bytes(content)


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    by = [
        name
        for name in ("age", "dataset", "backbone", "method", "batch", "variant", "limit", "id", "seed")
        if name in rows
    ]
    return rows.sort(by, nulls_last=False)
