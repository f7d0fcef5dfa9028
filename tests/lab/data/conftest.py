"""A folder of its own for every test of the data room, and small files of every official shape."""

import csv
import io
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from ploc_lab.data import splits


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    """Caches go to a temporary folder; returns it."""
    folder = tmp_path / "work"
    monkeypatch.setenv("PLOC_WORK", str(folder))
    return folder


@pytest.fixture
def shapes():
    """Writers of small raw files, and what their encoding must be."""
    return SimpleNamespace(text=text, table=table, zipped=zipped, by_raw_row=by_raw_row, standard=standard)


def text(columns):
    """Columns (name -> values) as CSV text; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def table(path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(columns), encoding="utf-8")
    return path


def zipped(path, member, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return path


def by_raw_row(ds):
    """X and labels in the order of the filtered raw file; the label of an ood_validation row is None."""
    x, y = np.full((len(ds), ds.d), np.nan, dtype=np.float32), [None] * len(ds)
    s = ds.stream()
    labels = {"ood_test": s.open(np.zeros(len(s))), **{name: ds.part(name).y for name in splits.SOURCE}}
    for name in ds.splits:
        where = ds.positions(name)
        x[where] = ds.part(name).rows()
        for row, label in zip(where, labels.get(name, ()), strict=False):
            y[row] = int(label)
    return x, y


def standard(values, train):
    """What a standardised column must be."""
    values = np.asarray(values, dtype=float)
    return (values - values[train].mean()) / values[train].std()
