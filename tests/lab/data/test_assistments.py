import numpy as np
import pytest

from ploc_lab import data
from ploc_lab.data import assistments as room

N = 60


def small(shapes, root, **other):
    """Sixty answers: a third in one of the ten schools; partial credit and gaps must go."""
    columns = {
        "problem_log_id": [500 - i for i in range(N)],
        "skill": ["Rounding, up"] * N,
        "problem_type": [["algebra", "choose_1"][i % 2] for i in range(N)],
        "tutor_mode": ["tutor"] * N,
        "type": [None if i % 3 == 2 else "MasterySection" for i in range(N)],
        "correct": [0.5 if i == 4 else float(i % 2) for i in range(N)],
        **{
            name: [float((i * (j + 2)) % 11) for i in range(N)] for j, name in enumerate(room.COLUMNS.numeric)
        },
        "skill_id": [None if i == 10 else 1_641.0 - i for i in range(N)],
        "bottom_hint": [None if i in (20, 21) else i % 2 for i in range(N)],
        "first_action": [i % 3 for i in range(N)],
        "school_id": [None if i == 30 else (5040.0 if i % 3 == 0 else 73.0) for i in range(N)],
        "answer_text": ['said "7",\nthen left'] * N,
    }
    return shapes.table(root / room.FILE, {**columns, **other})


KEPT = [i for i in range(N) if i not in (4, 10, 20, 21, 30)]


def test_a_small_file_goes_through_the_whole_loader(shapes, tmp_path):
    small(shapes, tmp_path)
    # 9 numeric, 2 + 1 + 2 categories, 3 passed through.
    ds = data.load("assistments", tmp_path, data.Fingerprint({"rows": 55, "width": 17}))
    x, y = shapes.by_raw_row(ds)
    assert all(label in (None, i % 2) for i, label in zip(KEPT, y, strict=True))
    target = {row for name in ("ood_test", "ood_validation") for row in ds.positions(name)}
    assert target == {row for row, i in enumerate(KEPT) if i % 3 == 0}
    np.testing.assert_allclose(
        x[:, 4], shapes.standard([(i * 6) % 11 for i in KEPT], ds.positions("train")), atol=1e-6
    )
    assert ds.columns[9:14] == (
        "problem_type=algebra",
        "problem_type=choose_1",
        "tutor_mode=tutor",
        "type=MasterySection",
        "type=nan",
    )
    assert x[:, 13].tolist() == [float(i % 3 == 2) for i in KEPT]
    # The skill is a raw number, unscaled.
    assert x[:, -3].tolist() == [1_641.0 - i for i in KEPT]
    assert ds.columns[-3:] == ("skill_id", "bottom_hint", "first_action")


def test_time_is_the_log(shapes, tmp_path):
    small(shapes, tmp_path)
    ds = data.load("assistments", tmp_path, data.Fingerprint({}))
    assert (np.diff(ds.positions("ood_test")[ds.stream("time").index]) < 0).all()


def test_another_table_is_refused(shapes, tmp_path):
    small(shapes, tmp_path)
    with pytest.raises(data.WrongDataError, match="rows: expected 2,667,776, found 55"):
        data.load("assistments", tmp_path)
    small(shapes, tmp_path, position=["first"] * N)
    with pytest.raises(data.WrongDataError, match="can't be read as assistments"):
        data.load("assistments", tmp_path)
