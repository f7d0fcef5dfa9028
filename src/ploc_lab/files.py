"""Files of many writers: each written whole or not at all, and what a dead writer left swept away."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Lend a name to write to; it becomes `path` when the block ends well, so that no half file is ever seen.

    The name is the writer's alone, among threads too.

    >>> with whole(Path("/tmp/answer.txt")) as name:
    ...     name.write_text("42")
    2
    >>> Path("/tmp/answer.txt").read_text()
    '42'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = f"{socket.gethostname()}.{os.getpid()}-{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{writer}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> int:
    """Remove what writers that are no longer alive on this machine left half-written; how many files."""
    here = socket.gethostname()
    left = [path for path in folder.rglob(".*.tmp") if _dead(path, here)]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def _dead(path: Path, here: str) -> bool:
    host, _, writer = path.name.removesuffix(".tmp").rpartition(".")
    pid = writer.partition("-")[0]
    if not host.endswith(f".{here}") or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
