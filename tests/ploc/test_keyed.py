import json

import pytest

from ploc.keyed import Keyed


def test_a_state_comes_back_to_the_last_bit(tmp_path):
    rows = Keyed(by="tenant", anchor=0.25, lines=3)
    for key, z in (("a", 0.1), ("a", 0.2), ("b", -7.3)):
        rows[key].step(z)
    rows.save(tmp_path / "s.json")
    back = Keyed(by="tenant", anchor=0.25).load(tmp_path / "s.json")
    assert back.lines == 3
    assert back.count == 3
    assert {k: c.state() for k, c in back.centers.items()} == {k: c.state() for k, c in rows.centers.items()}
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]


@pytest.mark.parametrize(
    "other", [Keyed(by="x"), Keyed(anchor=1.0, by="k"), Keyed(classes=3, by="k"), Keyed(proba=True, by="k")]
)
def test_a_state_of_other_settings_is_refused(tmp_path, other):
    Keyed(by="k").save(tmp_path / "s.json")
    with pytest.raises(ValueError, match="was saved with"):
        other.load(tmp_path / "s.json")


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"ploc": "state"', '{"ploc":"state","version":1,"keys":{"a":{"format":"PLOC"}}}'],
)
def test_a_file_that_holds_no_state_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="holds no state"):
        Keyed().load(path)
    assert path.read_text() == text


def test_a_later_version_is_refused(tmp_path):
    path = tmp_path / "s.json"
    Keyed().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(ValueError, match="version 2"):
        Keyed().load(path)


def test_a_bad_setting_is_refused_before_the_first_row():
    with pytest.raises(ValueError, match="classes"):
        Keyed(classes=1)
    with pytest.raises(ValueError, match="anchor"):
        Keyed(anchor=float("nan"))
