import numpy as np
import pytest

from ploc_lab import data
from ploc_lab.data import diabetes_readmission as room

N = 48


def small(shapes, root):
    """Forty-eight stays: every eighth without a race, every third in the emergency room."""
    columns = {
        "encounter_id": [1_000 - i for i in range(N)],
        "patient_nbr": list(range(N)),
        "race": ["?" if i % 8 == 7 else ("Caucasian" if i % 2 else "Asian") for i in range(N)],
        "gender": ["Male" if i % 4 == 0 else "Female" for i in range(N)],
        "admission_source_id": [7 if i % 3 == 0 else 1 for i in range(N)],
        **{name: [(i + j) % 9 for i in range(N)] for j, name in enumerate(room.COLUMNS.numeric)},
        **{name: ["No"] * N for name in room.COLUMNS.onehot},
        "age": ["[70-80)" if i % 5 else "?" for i in range(N)],
        "max_glu_serum": ["None" if i % 2 else ">200" for i in range(N)],
        "readmitted": [["NO", "<30", ">30"][i % 3] for i in range(N)],
    }
    shapes.zipped(root / room.FILE, room.MEMBER, shapes.text(columns))
    return [i for i in range(N) if i % 8 != 7]


def test_a_small_archive_goes_through_the_whole_loader(shapes, tmp_path):
    kept = small(shapes, tmp_path)
    ds = data.load("diabetes_readmission", tmp_path, data.Fingerprint({"rows": 42}))
    x, y = shapes.by_raw_row(ds)
    # Any readmission counts, early or late.
    assert all(label in (None, int(i % 3 != 0)) for i, label in zip(kept, y, strict=True))
    target = {row for name in ("ood_test", "ood_validation") for row in ds.positions(name)}
    assert target == {row for row, i in enumerate(kept) if i % 3 == 0}
    np.testing.assert_allclose(
        x[:, 0], shapes.standard([i % 9 for i in kept], ds.positions("train")), atol=1e-6
    )
    age = ds.columns.index("age=nan")
    assert ds.columns[age : age + 2] == ("age=nan", "age=[70-80)")
    assert x[:, age].tolist() == [float(i % 5 == 0) for i in kept]
    # "None" is a category of its own, not a missing value.
    assert {"max_glu_serum=>200", "max_glu_serum=None"} < set(ds.columns)
    # The group indicators are the last two columns.
    assert ds.columns[-2:] == ("race", "gender")
    assert x[:, -2].tolist() == [float(i % 2) for i in kept]
    assert x[:, -1].tolist() == [float(i % 4 == 0) for i in kept]


def test_the_time_order_is_that_of_the_encounters(shapes, tmp_path):
    small(shapes, tmp_path)
    ds = data.load("diabetes_readmission", tmp_path, data.Fingerprint({}))
    assert ds.time == "encounter_id"
    # Encounters count down in the file.
    assert (np.diff(ds.positions("ood_test")[ds.stream("time").index]) < 0).all()


def test_what_is_no_such_archive_is_refused(shapes, tmp_path):
    path = tmp_path / room.FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"<html>moved</html>")
    with pytest.raises(data.WrongDataError, match=r"not the expected archive.*not a zip file"):
        data.load("diabetes_readmission", tmp_path)
    shapes.zipped(path, "other.csv", "a\n1\n")
    with pytest.raises(data.WrongDataError, match=r"diabetic_data\.csv"):
        data.load("diabetes_readmission", tmp_path)


def test_a_damaged_archive_is_refused(shapes, tmp_path):
    small(shapes, tmp_path)
    path = tmp_path / room.FILE
    content = bytearray(path.read_bytes())
    content[200:232] = bytes(32)
    path.write_bytes(content)
    with pytest.raises(data.WrongDataError, match=r"dataset_diabetes\.zip"):
        data.load("diabetes_readmission", tmp_path)


def test_the_complete_archive_gives_the_measured_numbers(real_data):
    ds = data.load("diabetes_readmission", real_data(room.FILE))
    assert (len(ds), ds.d, len(ds.stream())) == (99_493, 183, 50_968)
    assert ds.prior[1] == pytest.approx(0.42423, abs=5e-6)
    assert ds.part("validation").y.mean() == pytest.approx(0.42184, abs=5e-6)
    assert ds.part("id_test").y.mean() == pytest.approx(0.41614, abs=5e-6)
    assert ds.stream().open(np.zeros(50_968)).mean() == pytest.approx(0.49384, abs=5e-6)
    widths = [sum(one.startswith(f"{name}=") for one in ds.columns) for name in room.COLUMNS.onehot]
    assert widths == [9, 4, 10, 16, 24, 24, 20, 4, 4, 4, 2, 2, 2, 3, 2, 3, 3, 2, 3, 3, 2, 2, 2, 2, 1, 1, 4,
                      2, 2, 2, 1, 2, 2, 2]  # fmt: skip
