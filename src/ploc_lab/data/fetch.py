"""Download what may be downloaded: from the official address, resumed, checked, and named only when whole."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPResponse

    from rich.progress import TaskID

    from ploc_lab.data.schema import Download, Task

    Report = Callable[[int, int | None], None]

CHUNK = 1 << 18
TIMEOUT = 30.0


class FetchError(OSError):
    """A download did not end: the message says why, what is kept and what to do."""


def fetch(task: Task, root: Path) -> list[Path]:
    """Bring the raw files of a task under `root` and return those that were downloaded now.

    A file that is here is left alone, unless its checksum is known and differs: that is refused.
    """
    wanted = [download for download in task.source.downloads if not _here(download, root)]
    bars = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*bars, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        for number, download in enumerate(wanted, 1):
            bar = progress.add_task(f"{number}/{len(wanted)} {Path(download.path).name}", total=None)
            get(download, root, partial(_show, progress, bar))
            progress.update(bar, visible=len(wanted) == 1)
    return [root / download.path for download in wanted]


def get(download: Download, root: Path, report: Report | None = None) -> Path:
    """One file: resumed from `NAME.part` if there is one, renamed to its own name when whole and right."""
    path = root / download.path
    part, tag = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.tag")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        total = _transfer(download.url, part, tag, report)
    except (OSError, HTTPException) as error:
        raise FetchError(f"{download.url}: {_reason(error)}; {_kept(part)}") from error
    if total is None and download.sha256 is None:
        raise FetchError(f"{download.url}: the server doesn't tell the size, so no copy can be known whole")
    if total is not None and _size(part) != total:
        raise FetchError(f"{download.url}: the connection ended before byte {total:,}; {_kept(part)}")
    if download.sha256 and (found := _sha256(part)) != download.sha256:
        part.unlink()
        raise FetchError(
            f"{download.url} is not the published file: expected sha256 {download.sha256}, found {found}; "
            "the copy was removed"
        )
    part.replace(path)
    tag.unlink(missing_ok=True)
    return path


def _here(download: Download, root: Path) -> bool:
    path = root / download.path
    if path.is_dir():
        raise FetchError(f"{path} is a folder where a file is expected; move it away and fetch again")
    if not path.is_file():
        return False
    if download.sha256 and (found := _sha256(path)) != download.sha256:
        raise FetchError(
            f"{path} is here but is not the published file: expected sha256 {download.sha256}, "
            f"found {found}; move it away and fetch again"
        )
    return True


def _transfer(url: str, part: Path, tag: Path, report: Report | None) -> int | None:
    """Bring the rest of the file into `part`; the size of the whole, if the server tells it."""
    start = _size(part)
    headers = {"User-Agent": "ploc-lab"}
    if start:
        headers["Range"] = f"bytes={start}-"
        # A server whose file has changed since answers with the whole of the new one.
        if tag.is_file():
            headers["If-Range"] = tag.read_text(encoding="latin-1")
    try:
        # S310: the address is the registry's own, never a user's.
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT)  # noqa: S310
    except HTTPError as error:
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return start
        part.unlink()
        return _transfer(url, part, tag, report)
    with response:
        if response.status != 206:
            start = 0
        elif not (span := response.headers.get("Content-Range", "")).startswith(f"bytes {start}-"):
            raise HTTPException(f"asked for the bytes from {start:,}, the server sends {span or 'others'!r}")
        if mark := response.headers.get("ETag") or response.headers.get("Last-Modified"):
            tag.write_text(mark, encoding="latin-1")
        length = response.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        done = start
        with part.open("ab" if start else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                if report:
                    report(done, total)
    # A chunked answer tells its end instead of its size; one that is cut raises while it is read.
    return done if response.chunked else total


def _show(progress: Progress, bar: TaskID, done: int, total: int | None) -> None:
    progress.update(bar, completed=done, total=total)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _kept(part: Path) -> str:
    if not _size(part):
        return "nothing was saved"
    return f"{_size(part):,} bytes are kept in {part}, the same command goes on from there"


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        return f"no connection ({error.reason})"
    return str(error) or type(error).__name__
