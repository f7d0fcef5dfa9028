"""CIFAR-10 from its six official files, whole or as a pair of classes; its test images are the target."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ploc_lab.data import cache
from ploc_lab.data.cifar10_fetch import ARCHIVE, FOLDER, SHA256, check, fetch_files
from ploc_lab.data.images import ImageDataset
from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, WrongDataError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS


def load(task: Task, files: Sequence[Path], *, official: bool = True) -> ImageDataset:
    """Read the six files, refuse any that is not the published one, and keep the task's classes."""
    if official:
        for path in files:
            check(path, path.read_bytes(), SHA256[path.name])
    records = [_records(path) for path in files]
    kept = pair(task.name)
    if kept:
        records = [batch[np.isin(batch[:, 0], kept)] for batch in records]
    labels = np.concatenate([batch[:, 0] for batch in records])
    y = np.searchsorted(kept, labels).astype(np.uint8) if kept else labels
    train, test = np.concatenate([batch[:, 1:] for batch in records[:-1]]), records[-1][:, 1:]
    digest = hashlib.sha256(f"{task.name} 90/5/5 in file order {cache.key(files)}".encode()).hexdigest()
    return ImageDataset(task, train, test, y, digest)


def pair(name: str) -> tuple[int, ...]:
    """The classes of a two-class task, in order of their numbers; none for the whole of CIFAR-10.

    >>> pair("cifar10_cat_dog"), pair("cifar10")
    ((3, 5), ())
    """
    words = name.split("_")[1:]
    if not words:
        return ()
    kept = tuple(sorted({CLASSES.index(word) for word in words if word in CLASSES}))
    if len(words) != 2 or len(kept) != 2:
        raise ValueError(
            f"{name!r} is no pair of classes, as cifar10_cat_dog; there are: {', '.join(CLASSES)}"
        )
    return kept


def two_class(name: str) -> Task:
    """The task of one pair of classes, by its name: the second of the pair is the positive one."""
    kept = pair(name)
    first, second = (CLASSES[k] for k in kept)
    return replace(
        TASK,
        name=f"cifar10_{first}_{second}",
        title=f"CIFAR-10: {first} or {second}",
        label=f"a {second}, not a {first}",
        fingerprint=Fingerprint(
            {"rows": 12_000, "train": 9_000, "validation": 500, "id_test": 500, "ood_validation": 0}
            | {"ood_test": 2_000, "width": PIXELS, "classes": 2}
        ),
    )


def _records(path: Path) -> NDArray[np.uint8]:
    content = np.fromfile(path, dtype=np.uint8)
    if len(content) == 0 or len(content) % RECORD:
        raise WrongDataError(
            f"{path} has {len(content):,} bytes: not whole records of 1 label and {PIXELS:,} pixels"
        )
    records = content.reshape(-1, RECORD)
    bad = np.flatnonzero(records[:, 0] >= len(CLASSES))
    if len(bad):
        raise WrongDataError(f"{path}: record {bad[0]} has label {records[bad[0], 0]}, there are 0 to 9")
    return records


def _no_table(_: Sequence[Path]) -> Table:
    raise TypeError("cifar10 is images: `data.load` reads it, there is no table")


TASK = Task(
    name="cifar10",
    title="CIFAR-10 images",
    files=tuple(f"{FOLDER}/{name}" for name in SHA256),
    read=_no_table,
    load=load,
    fetch=fetch_files,
    columns=Columns(()),
    label="one of ten classes",
    domain="the 10,000 test images, as they are, corrupted, or long-tailed",
    fingerprint=Fingerprint(
        {"rows": 60_000, "train": 45_000, "validation": 2_500, "id_test": 2_500, "ood_validation": 0}
        | {"ood_test": 10_000, "width": PIXELS, "classes": 10}
    ),
    source=Source(
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="none stated",
        terms="cite Krizhevsky (2009), Learning multiple layers of features from tiny images",
        downloads=(ARCHIVE,),
    ),
    note="the paper's vision probe",
)
