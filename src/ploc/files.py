"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copymode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def whole(target: str | Path) -> Iterator[Path]:
    """Lend a path to write to; it becomes `target` when the block ends well and is gone when it does not.

    A reader of `target` sees the old file or the new one, through a power cut as well: the new bytes are on
    the disk before the name is theirs. The new file has the old one's permissions, a link goes on pointing to
    it, and what is no file (a device, a pipe) is refused, for it would be replaced by one.

    >>> with whole("/tmp/answer.txt") as path:
    ...     path.write_text("42")
    2
    >>> Path("/tmp/answer.txt").read_text()
    '42'
    """
    target = place(target)
    # One fixed name: a process that was killed leaves at most one such file, and the next one writes over it.
    part = target.with_name(f".{target.name}.part")
    try:
        try:
            part.touch()
            if target.exists():
                copymode(target, part)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
        yield part
        _sync(part)
        os.replace(part, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    if os.name == "posix":
        _sync(target.parent)


def place(target: str | Path) -> Path:
    """Where a file of this name would be written, links followed; refused if it can't be, before any work.

    >>> place("/tmp/answer.txt").name
    'answer.txt'
    """
    target = Path(target)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a device or a pipe, which can't be replaced whole; name a file")
    if target.is_symlink():
        target = Path(os.path.realpath(target))
        if target.is_symlink():
            raise ValueError(f"{target} is a link that leads back to itself; name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent}; make it first")
    return target


def _sync(path: Path) -> None:
    """Wait until the disk has it."""
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
