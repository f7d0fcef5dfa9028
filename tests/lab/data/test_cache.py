import logging

import numpy as np
import pytest

from ploc_lab.data import cache

ARRAYS = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "none": np.empty((2, 0), dtype=np.float32)}
CARD = {"name": "x", "found": {"rows": 2, "rate": 0.25}}


def put(folder, arrays=ARRAYS, card=CARD):
    cache.write(folder, arrays, card, cache.digest(arrays, card))


def test_what_is_written_is_read(tmp_path):
    put(tmp_path / "deep" / "x")
    arrays, card, digest = cache.read(tmp_path / "deep" / "x")
    assert card == CARD
    assert digest == cache.digest(ARRAYS, CARD)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["x"]


def test_nothing_is_read_where_nothing_is(tmp_path):
    assert cache.read(tmp_path / "x") is None


@pytest.mark.parametrize("harm", ["flip", "cut", "card", "gone"])
def test_a_damaged_entry_is_dropped_and_said(tmp_path, caplog, harm):
    folder = tmp_path / "x"
    put(folder)
    victim = folder / "a.npy"
    if harm == "flip":
        content = bytearray(victim.read_bytes())
        content[-1] ^= 1
        victim.write_bytes(content)
    elif harm == "cut":
        victim.write_bytes(victim.read_bytes()[:-3])
    elif harm == "card":
        (folder / "card.json").write_text("{")
    else:
        victim.unlink()
    with caplog.at_level(logging.WARNING):
        assert cache.read(folder) is None
    assert "damaged" in caplog.text
    assert not folder.exists()


def test_a_write_that_fails_leaves_nothing(tmp_path):
    objects = {"a": np.array([object()])}
    with pytest.raises(ValueError, match="allow_pickle"):
        cache.write(tmp_path / "x", objects, CARD, "digest")
    assert list(tmp_path.iterdir()) == []


def test_the_slower_of_two_writers_leaves_the_faster_ones_entry(tmp_path):
    put(tmp_path / "x")
    put(tmp_path / "x", {"a": np.zeros(3)}, {"name": "late"})
    assert cache.read(tmp_path / "x")[1] == CARD
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_the_digest_sees_bytes_types_shapes_and_the_card():
    a = np.arange(4, dtype=np.int32)
    seen = {
        cache.digest({"a": a}, CARD),
        cache.digest({"b": a}, CARD),
        cache.digest({"a": a.astype(np.int64)}, CARD),
        cache.digest({"a": a.reshape(2, 2)}, CARD),
        cache.digest({"a": a + 1}, CARD),
        cache.digest({"a": a}, {}),
    }
    assert len(seen) == 6


def test_the_key_is_the_content_of_the_files_in_order(tmp_path):
    one, two, copy = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(b"one")
    two.write_bytes(b"two")
    copy.write_bytes(b"one")
    assert cache.key([one, two]) == cache.key([copy, two]) != cache.key([two, one])
