import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from ploc import metrics
from ploc_lab import data
from ploc_lab.data import heloc

SMALL = data.Fingerprint({"rows": 30, "train": 16, "validation": 2, "id_test": 2, "ood_test": 9, "width": 25})


def small(shapes, root, **other):
    """Thirty applicants: a score of 63 and below for 20 of them, the special -9 among these."""
    score = [-9, *range(45, 64), *range(64, 74)]
    columns = {
        "RiskPerformance": ["Good" if i % 3 == 0 else "Bad" for i in range(30)],
        "ExternalRiskEstimate": score,
        **{name: [(i * (j + 1)) % 23 - 8 for i in range(30)] for j, name in enumerate(heloc.COLUMNS.numeric)},
        "MaxDelq2PublicRecLast12M": [[3, 0, -9][i % 3] for i in range(30)],
        "MaxDelqEver": [[5, 8][i % 2] for i in range(30)],
    }
    return shapes.table(root / heloc.FILE, {**columns, **other})


def test_a_small_file_goes_through_the_whole_loader(shapes, tmp_path):
    small(shapes, tmp_path)
    ds = data.load("heloc", tmp_path, SMALL)
    x, y = shapes.by_raw_row(ds)
    train = ds.positions("train")
    assert all(label in (None, int(i % 3 == 0)) for i, label in enumerate(y))
    assert set(ds.positions("ood_test")) | set(ds.positions("ood_validation")) == set(range(20, 30))
    for j in range(20):
        values = [(i * (j + 1)) % 23 - 8 for i in range(30)]
        np.testing.assert_allclose(x[:, j], shapes.standard(values, train), atol=1e-6)
    assert ds.columns[20:] == (
        "MaxDelq2PublicRecLast12M=3",
        "MaxDelq2PublicRecLast12M=0",
        "MaxDelq2PublicRecLast12M=-9",
        "MaxDelqEver=5",
        "MaxDelqEver=8",
    )
    np.testing.assert_array_equal(x[:6, 20:23], np.tile(np.eye(3), (2, 1)))
    np.testing.assert_array_equal(x[:4, 23:], np.tile(np.eye(2), (2, 1)))


def test_the_small_file_is_not_the_one_and_what_differs_is_listed(shapes, tmp_path, work):
    path = small(shapes, tmp_path)
    with pytest.raises(data.WrongDataError) as refusal:
        data.load("heloc", tmp_path)
    assert str(path) in str(refusal.value)
    assert refusal.value.differences[:2] == [
        "rows: expected 10,459, found 30",
        "train: expected 2,220, found 16",
    ]
    assert len(refusal.value.differences) == 11
    assert not work.exists()


def test_a_file_with_other_labels_or_columns_is_refused(shapes, tmp_path):
    small(shapes, tmp_path, RiskPerformance=[0, 1] * 15)
    with pytest.raises(data.WrongDataError, match=r"must be Good or Bad, found \['0', '1'\]"):
        data.load("heloc", tmp_path)
    shapes.table(tmp_path / heloc.FILE, {"RiskPerformance": ["Good"], "x1": [1]})
    with pytest.raises(data.WrongDataError, match=r"lacks the column.*ExternalRiskEstimate, MSinceOldest"):
        data.load("heloc", tmp_path)
    small(shapes, tmp_path, ExternalRiskEstimate=["unknown", *range(45, 74)])
    with pytest.raises(data.WrongDataError, match=r"heloc_dataset_v1\.csv can't be read as heloc"):
        data.load("heloc", tmp_path)
    (tmp_path / heloc.FILE).write_bytes(b"<html>please log in</html>\n" + bytes(range(256)))
    with pytest.raises(data.WrongDataError, match=r"heloc_dataset_v1\.csv"):
        data.load("heloc", tmp_path)


@pytest.mark.parametrize("column", ["NetFractionRevolvingBurden", "MaxDelqEver"])
def test_a_copy_with_one_other_cell_is_refused(real_data, tmp_path, column):
    raw = pl.read_csv(real_data(heloc.FILE) / heloc.FILE)
    values = raw[column].to_list()
    values[7] = next(value for value in values if value != values[7])
    (tmp_path / heloc.FILE).parent.mkdir()
    raw.with_columns(pl.Series(column, values)).write_csv(tmp_path / heloc.FILE)
    with pytest.raises(data.WrongDataError, match=r"study; sum of .*: expected"):
        data.load("heloc", tmp_path)


def test_a_row_without_a_score_is_refused(shapes, tmp_path):
    small(shapes, tmp_path, ExternalRiskEstimate=[*range(45, 74), None])
    with pytest.raises(data.WrongDataError, match=r"can't be read.*the domain must be .* None in row 29"):
        data.load("heloc", tmp_path)


def test_the_complete_file_gives_the_measured_numbers(real_data):
    ds = data.load("heloc", real_data(heloc.FILE))
    assert ds.d == 38
    assert ds.prior[1] == pytest.approx(0.24099, abs=5e-6)
    assert ds.part("validation").y.mean() == pytest.approx(0.19784, abs=5e-6)
    assert ds.part("id_test").y.mean() == pytest.approx(0.25540, abs=5e-6)
    s = ds.stream()
    assert len(s) == 6_914
    assert s.open(np.zeros(6_914)).mean() == pytest.approx(0.56899, abs=5e-6)
    first, second = ds.columns[20:30], ds.columns[30:]
    assert [name.split("=")[1] for name in first] == ["3", "0", "7", "6", "4", "5", "-9", "9", "1", "2"]
    assert [name.split("=")[1] for name in second] == ["5", "8", "6", "4", "2", "-9", "3", "7"]


def test_rows_and_labels_belong_together(real_data):
    ds = data.load("heloc", real_data(heloc.FILE))
    train = ds.part("train")
    fitted = LogisticRegression(max_iter=1_000).fit(train.rows(), train.y)
    assert metrics.auroc(fitted.decision_function(train.rows()), train.y) > 0.70
    s = ds.stream("permuted", seed=1)
    z = fitted.decision_function(s.rows())
    assert metrics.auroc(z, s.open(z)) > 0.68


def test_every_row_of_the_complete_file_is_where_its_position_says(real_data):
    root = real_data(heloc.FILE)
    ds = data.load("heloc", root)
    raw = pl.read_csv(root / heloc.FILE)["ExternalRiskEstimate"].to_numpy()
    assert (raw[ds.positions("ood_test")] > 63).all()
    assert (raw[ds.positions("train")] <= 63).all()
