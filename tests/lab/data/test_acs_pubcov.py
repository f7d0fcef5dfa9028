import dataclasses

import numpy as np
import pytest

from ploc_lab import data
from ploc_lab.data import acs_pubcov as room

N = 40


def person(shapes, path, state, **other):
    """Forty people of one state and year: every fifth too old, every seventh too rich, two children."""
    columns = {
        "RT": ["P"] * N,
        "SERIALNO": [f"2018GQ{i:07d}" for i in range(N)],
        "ST": [f"{state:02d}"] * N,
        **{name: [f"{1 + (i + j) % 2:02d}" for i in range(N)]
           for j, name in enumerate(room.ONEHOT) if name not in ("ST", "DIVISION")},
        "FER": [" " if i % 2 else "2" for i in range(N)],
        "AGEP": [f"{70 if i % 5 == 4 else 20 + i:02d}" for i in range(N)],
        "PINCP": ["" if i in (1, 2) else ("0050000" if i % 7 == 6 else f"{-1000 * i:07d}") for i in range(N)],
        "SEX": [f"{1 + i % 2}" for i in range(N)],
        "RAC1P": [f"{1 + i % 3}" for i in range(N)],
        "DIS": [f"{1 + (i % 3 > 0)}" for i in range(N)],
        "PUBCOV": [f"{1 + (i % 4 > 0)}" for i in range(N)],
    }  # fmt: skip
    return shapes.zipped(path, f"psam_p{state:02d}.csv", shapes.text({**columns, **other}))


KEPT = [i for i in range(N) if i % 5 != 4 and i % 7 != 6 and i not in (1, 2)]


def read(shapes, tmp_path):
    files = [
        person(shapes, tmp_path / "2014" / "csv_pal.zip", 1),
        person(shapes, tmp_path / "2018" / "csv_ppr.zip", 72),
    ]
    return room.read(files)


def test_the_files_are_filtered_and_lie_year_by_year(shapes, tmp_path):
    table = read(shapes, tmp_path)
    x = table.features
    assert len(x) == 2 * len(KEPT)
    assert x["PINCP"].to_list() == [-1000 * i for i in KEPT] * 2
    assert x["ACS_YEAR"].to_list() == [2014] * len(KEPT) + [2018] * len(KEPT)
    assert x["ST"].to_list() == [1] * len(KEPT) + [72] * len(KEPT)
    # Alabama is East South Central; Puerto Rico has no division of its own.
    assert x["DIVISION"].to_list() == [6] * len(KEPT) + [0] * len(KEPT)
    # A blank is 0.
    assert x["FER"].to_list() == [0 if i % 2 else 2 for i in KEPT] * 2
    assert x["SEX"].to_list() == [int(i % 2 == 0) for i in KEPT] * 2
    assert x["RAC1P"].to_list() == [int(i % 3 == 0) for i in KEPT] * 2
    assert table.y.tolist() == [i % 4 == 0 for i in KEPT] * 2
    assert table.ood.tolist() == [i % 3 == 0 for i in KEPT] * 2
    np.testing.assert_array_equal(table.time, x["ACS_YEAR"])


def test_a_small_census_goes_through_the_whole_loader(shapes, tmp_path, monkeypatch):
    files = ("acs_pubcov/2014/csv_pal.zip", "acs_pubcov/2018/csv_ppr.zip")
    for file, state in zip(files, (1, 72), strict=True):
        person(shapes, tmp_path / file, state)
    monkeypatch.setattr(room, "TASK", dataclasses.replace(room.TASK, files=files))
    # 3 numeric, 2 or (ESP .. SCHL, twelve codes; FER 0 and 2) values, ST 2, DIVISION 2, two indicators.
    ds = data.load("acs_pubcov", tmp_path, data.Fingerprint({"rows": 2 * len(KEPT), "width": 3 + 24 + 4 + 2}))
    x, _ = shapes.by_raw_row(ds)
    year = shapes.standard([2014] * len(KEPT) + [2018] * len(KEPT), ds.positions("train"))
    np.testing.assert_allclose(x[:, 2], year, atol=1e-6)
    assert ds.columns[:3] == ("PINCP", "AGEP", "ACS_YEAR")
    assert ds.columns[-2:] == ("SEX", "RAC1P")
    positions = ds.positions("ood_test")[ds.stream("time").index]
    assert (np.diff(positions) > 0).all()
    with pytest.raises(data.WrongDataError, match="rows: expected 5,916,565, found 52"):
        data.load("acs_pubcov", tmp_path)


def test_a_state_file_that_is_not_one_is_named(shapes, tmp_path):
    path = tmp_path / "2014" / "csv_pal.zip"
    path.parent.mkdir()
    path.write_bytes(b"<html>")
    with pytest.raises(data.WrongDataError, match=r"csv_pal\.zip is not a zip archive"):
        room.read([path])
    shapes.zipped(path, "readme.txt", "nothing")
    with pytest.raises(data.WrongDataError, match="must hold one person file"):
        room.read([path])
    shapes.zipped(path, "psam_p01.csv", "RT,AGEP\nP,3\n")
    with pytest.raises(data.WrongDataError, match=r"csv_pal\.zip.*lacks.*PUBCOV, DIS, PINCP"):
        room.read([path])
    person(shapes, path, 1, AGEP=["old"] * N)
    with pytest.raises(data.WrongDataError, match=r"csv_pal\.zip"):
        room.read([path])


def test_fifty_states_and_puerto_rico_in_nine_divisions_and_none():
    codes = [code for group in room.DIVISIONS.values() for code in group]
    assert len(codes) == len(set(codes)) == len(set(room.STATES)) == 51
    # Federal codes skip 3, 7, 14, 43 and 52; 11 is the District of Columbia.
    assert sorted(codes) == [*(set(range(1, 57)) - {3, 7, 11, 14, 43, 52}), 72]
    assert len(room.TASK.files) == len(room.TASK.source.downloads) == 255
