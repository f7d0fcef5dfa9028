"""Encoded tables on disk: a folder each, keyed by content, written whole or not at all, checked when read."""

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Kept = tuple[Arrays, Mapping[str, Any], str]
_CARD = "card.json"
_log = logging.getLogger(__name__)


def key(files: Iterable[Path]) -> str:
    """Hash of the content of files, in order; names and dates don't count."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def digest(arrays: Arrays, card: Mapping[str, Any]) -> str:
    """Hash of arrays (name, type, shape, bytes) and the card beside them."""
    total = hashlib.sha256(json.dumps(card, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.data if array.size else b"")
    return total.hexdigest()


def write(folder: Path, arrays: Arrays, card: Mapping[str, Any], hashed: str) -> None:
    """Write a folder under a temporary name, then rename it; a folder that is there by then stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        text = json.dumps({"digest": hashed, "arrays": sorted(arrays), "card": card}, indent=1)
        (draft / _CARD).write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.rename(folder)
    except OSError:
        if not (folder / _CARD).exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read(folder: Path) -> Kept | None:
    """Arrays (memory-mapped), card and digest of a folder; None if there is none; a damaged one goes."""
    if not folder.exists():
        return None
    try:
        return _read(folder)
    except (OSError, ValueError, KeyError, EOFError) as error:
        _log.warning("cache %s is damaged (%s); it is made again from the raw file", folder, error)
        shutil.rmtree(folder)
        return None


def _read(folder: Path) -> Kept:
    content = json.loads((folder / _CARD).read_text(encoding="utf-8"))
    arrays = {name: _load(folder / f"{name}.npy") for name in content["arrays"]}
    found = digest(arrays, content["card"])
    if found != content["digest"]:
        raise ValueError(f"its digest is {found[:12]}, the one written with it {content['digest'][:12]}")
    return arrays, content["card"], found


def _load(path: Path) -> NDArray[Any]:
    # A plain view of the mapped file: slices of a memmap cost ten times those of an array.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
