"""The result store: one parquet file a cell, written whole or not at all."""

import io
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import polars as pl


class Store:
    """A folder of cells by key. A file that is there is whole: it was written beside, synced, renamed.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.write("k", pl.DataFrame({"id": ["a"], "dataset": ["heloc"], "seed": [0]}))
    >>> store.has("k"), store.read("k").height
    (True, 1)
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

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
        return {str(pl.read_parquet(self.path(key), columns=["id"])["id"][0]) for key in self.keys()}

    def read(self, key: str) -> pl.DataFrame:
        """The rows of a cell, one a seed."""
        return pl.read_parquet(self.path(key))

    def write(self, key: str, rows: pl.DataFrame) -> None:
        """Store a cell; on any failure the folder is as it was."""
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        replace_file(self.path(key), buffer.getvalue())

    def sweep(self) -> int:
        """Remove what writers that are no longer alive on this machine left half-written; how many files."""
        here = socket.gethostname()
        left = [path for path in self.root.glob(".*.tmp") if _dead(path, here)]
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)

    def gather(self, current: Mapping[str, str] | None = None) -> pl.DataFrame:
        """All cells in one frame, one row per cell and seed, in an order of their own.

        A question may have been answered under several keys (older code, other data): `current` maps a cell's
        id to the key that counts; of the others the latest counts.
        """
        current = current or {}
        newest: dict[str, tuple[int, str, pl.DataFrame]] = {}
        for key in sorted(self.keys()):
            rows = self.read(key)
            cell = rows["id"][0]
            if cell in current:
                if current[cell] == key:
                    newest[cell] = (0, key, rows)
                continue
            entry = (self.path(key).stat().st_mtime_ns, key, rows)
            if cell not in newest or newest[cell][:2] < entry[:2]:
                newest[cell] = entry
        if not newest:
            return pl.DataFrame()
        frames = [rows.with_columns(pl.lit(key).alias("key")) for _, key, rows in newest.values()]
        return _sorted(pl.concat(frames, how="diagonal_relaxed"))


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part, whatever dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp"
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    by = [
        name
        for name in ("dataset", "backbone", "method", "batch", "variant", "limit", "id", "seed")
        if name in rows
    ]
    return rows.sort(by, nulls_last=False)


def _dead(path: Path, here: str) -> bool:
    host, _, pid = path.name.removesuffix(".tmp").rpartition(".")
    if not host.endswith(f".{here}"):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
