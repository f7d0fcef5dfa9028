import pytest

from ploc_lab.data.schema import Fingerprint, WrongDataError, near, require


def test_a_fingerprint_names_every_number_that_differs_with_both_values():
    expected = Fingerprint({"rows": 10_459, "width": 38, "rate train": (0.2405, 0.2415), "train": (1, 5)})
    found = {"rows": 9_871, "width": 38, "rate train": 0.19, "train": 5}
    assert expected.differences(found) == [
        "rows: expected 10,459, found 9,871",
        "rate train: expected 0.2405 to 0.2415, found 0.19",
    ]


def test_big_numbers_are_compared_and_shown_whole():
    lines = Fingerprint({"rows": 5_916_565}).differences({"rows": 5_916_566})
    assert lines == ["rows: expected 5,916,565, found 5,916,566"]


def test_a_sum_may_differ_by_rounding_and_by_no_more_and_the_difference_shows():
    expected = Fingerprint({"sum": near(136_268.598975)})
    assert expected.differences({"sum": 136_268.598976}) == []
    assert expected.differences({"sum": 136_268.6001}) == [
        "sum: expected 136268.598839 to 136268.599111, found 136268.6001"
    ]


def test_missing_columns_are_all_named(tmp_path):
    with pytest.raises(WrongDataError, match=r"it lacks the column\(s\) b, c; it has 1: a"):
        require(tmp_path / "x.csv", ["a"], ["a", "b", "c"])
