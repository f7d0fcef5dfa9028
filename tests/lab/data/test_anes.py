import numpy as np
import pytest

from ploc_lab import data
from ploc_lab.data import anes

N = 60


def small(shapes, root, **other):
    """Sixty respondents of six years: every fourth from the South, every tenth not asked about the vote."""
    columns = {
        **{name: [None if (i + j) % 6 == 0 else i % 4 for i in range(N)]
           for j, name in enumerate(anes.COLUMNS.onehot)},
        "VCF0901b": ["TX" if i % 4 == 0 else "NY" for i in range(N)],
        **{name: [(i * 7) % 90 for i in range(N)] for name in anes.COLUMNS.numeric},
        "VCF0428": [[98, 99, 50][i % 3] for i in range(N)],
        "VCF0004": [1948 + 4 * (i % 6) for i in range(N)],
        "VCF0104": [1 + i % 2 for i in range(N)],
        "VCF0105a": [" " if i % 5 == 0 else f"{1 + i % 3}" for i in range(N)],
        "VCF0112": [" " if i % 4 == 1 else [3, 0, 1, 2][i % 4] for i in range(N)],
        "VCF0702": [" " if i % 10 == 9 else i % 3 for i in range(N)],
        "VCF9999": ["an answer in words"] * N,
    }  # fmt: skip
    return shapes.table(root / anes.FILE, {**columns, **other})


KEPT = [i for i in range(N) if i % 10 != 9]


def test_a_small_file_goes_through_the_whole_loader(shapes, tmp_path):
    small(shapes, tmp_path)
    ds = data.load("anes", tmp_path, data.Fingerprint({"rows": 54}))
    x, y = shapes.by_raw_row(ds)
    # Code 2 is a vote; 0 (don't know) and 1 are none; blank was not asked and is left out.
    assert all(label in (None, int(i % 3 == 2)) for i, label in zip(KEPT, y, strict=True))
    # A region that is not known counts as the source.
    target = {row for name in ("ood_test", "ood_validation") for row in ds.positions(name)}
    assert target == {row for row, i in enumerate(KEPT) if i % 4 == 0}
    # 98 and 99 of a thermometer are missing, and missing is bin -1; 50 alone makes one bin.
    assert x[:, ds.columns.index("VCF0428")].tolist() == [[-1.0, -1.0, 0.0][i % 3] for i in KEPT]
    assert set(x[:, ds.columns.index("VCF0004")]) == {0, 1, 2, 3, 4}
    # A blank answer is a category.
    assert x[:, ds.columns.index("VCF0301=no answer")].tolist() == [float((i + 1) % 6 == 0) for i in KEPT]
    # A state that only the target has keeps its column, all zero in train.
    assert x[ds.positions("train"), ds.columns.index("VCF0901b=TX")].sum() == 0
    assert x[:, -2].tolist() == [float(i % 2 == 0) for i in KEPT]
    assert x[:, -1].tolist() == [float(i % 5 != 0 and i % 3 == 0) for i in KEPT]


def test_the_published_schema_has_the_published_number_of_columns():
    assert len(anes.COLUMNS.numeric) == 6
    assert len(anes.COLUMNS.onehot) == len(set(anes.COLUMNS.onehot)) == 46
    assert len(anes.COLUMNS.passthrough) == 2


def test_time_is_the_year(shapes, tmp_path):
    small(shapes, tmp_path)
    ds = data.load("anes", tmp_path, data.Fingerprint({}))
    years = np.array([1948 + 4 * (i % 6) for i in KEPT])[ds.positions("ood_test")]
    assert (np.diff(years[ds.stream("time").index]) >= 0).all()


def test_a_small_or_strange_file_is_refused(shapes, tmp_path):
    small(shapes, tmp_path)
    with pytest.raises(data.WrongDataError, match="train: expected 34,561 to 34,816, found 31"):
        data.load("anes", tmp_path)
    small(shapes, tmp_path, VCF0702=["yes"] * N)
    with pytest.raises(data.WrongDataError, match="a code is not a number"):
        data.load("anes", tmp_path)
