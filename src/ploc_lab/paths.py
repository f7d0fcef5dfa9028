"""Where files lie: raw data under `data_root`, everything the laboratory makes under `work_root`."""

import os
import sys
from pathlib import Path


def data_root() -> Path:
    """Folder of the raw files: `$PLOC_DATA`, else `ploc` in the user's cache folder.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, PLOC_DATA="/srv/data"):
    ...     data_root().as_posix()
    '/srv/data'
    """
    chosen = os.environ.get("PLOC_DATA")
    return Path(chosen).expanduser() if chosen else _user_cache() / "ploc"


def work_root() -> Path:
    """Folder of caches, checkpoints and cells: `$PLOC_WORK`, else `work` where the command runs."""
    return Path(os.environ.get("PLOC_WORK") or "work").expanduser().absolute()


def _user_cache() -> Path:
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
