"""CIFAR-10 on a few made images in the official layout, and on the real files where they are."""

import hashlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ploc_lab import data
from ploc_lab.data import cifar10, cifar10_fetch

ANY = data.Fingerprint({"width": 3072})


def records(n, start=0, classes=10):
    """n official records: labels in turn, pixels that tell the record and the place."""
    number = np.arange(start, start + n)
    pixels = (number[:, None] * 7 + np.arange(3072)) % 256
    return np.concatenate([(number % classes)[:, None], pixels], axis=1).astype(np.uint8)


@pytest.fixture
def raw(tmp_path):
    """Five train files of 20 images and a test file of 30; their records by name."""
    folder = tmp_path / cifar10.FOLDER
    folder.mkdir(parents=True)
    made = {f"data_batch_{k}.bin": records(20, 20 * (k - 1)) for k in range(1, 6)}
    made["test_batch.bin"] = records(30, 500)
    for name, batch in made.items():
        (folder / name).write_bytes(batch.tobytes())
    return made


def test_the_official_layout_is_read_in_file_order(raw, tmp_path):
    ds = data.load("cifar10", tmp_path, ANY)
    assert [len(ds.part(split)) for split in ds.splits] == [90, 5, 5, 0, 30]
    whole = np.concatenate([raw[f"data_batch_{k}.bin"] for k in range(1, 6)])
    start = 0
    for split in ("train", "validation", "id_test"):
        part = ds.part(split)
        assert_array_equal(part.y, whole[start : start + len(part), 0])
        assert_array_equal(part.rows(), whole[start : start + len(part), 1:].astype(np.float32) / 255)
        start += len(part)
    s = ds.stream()
    assert_array_equal(s.rows(), raw["test_batch.bin"][:, 1:].astype(np.float32) / 255)
    assert_array_equal(s.open(np.zeros((30, 10))), raw["test_batch.bin"][:, 0])
    assert s.rows(slice(0, 2)).dtype == np.float32


def test_rows_are_asked_for_like_those_of_a_table(raw, tmp_path):
    part = data.load("cifar10", tmp_path, ANY).part("train")
    assert_array_equal(part.rows(np.array([3, 1])), part.rows()[[3, 1]])
    assert_array_equal(part.rows(slice(2, 5)), part.rows()[2:5])


def test_the_prior_is_the_share_of_each_class(raw, tmp_path):
    ds = data.load("cifar10", tmp_path, ANY)
    assert_array_equal(ds.prior, np.full(10, 0.1))


def test_a_pair_keeps_its_two_classes_and_the_second_is_the_positive_one(raw, tmp_path):
    ds = data.load("cifar10_cat_dog", tmp_path, ANY)
    assert [len(ds.part(split)) for split in ds.splits] == [18, 1, 1, 0, 6]
    assert_array_equal(ds.part("train").y[:4], [0, 1, 0, 1])  # labels come in turn: 3, 5, 3, 5
    kept = np.isin(raw["test_batch.bin"][:, 0], [3, 5])
    assert_array_equal(ds.stream().rows(), raw["test_batch.bin"][kept, 1:].astype(np.float32) / 255)
    assert_array_equal(ds.stream().open(np.zeros(6)), raw["test_batch.bin"][kept, 0] == 5)
    assert ds.name == "cifar10_cat_dog"


@pytest.mark.parametrize(
    "name", ["cifar10_cat", "cifar10_cat_cat", "cifar10_cat_wolf", "cifar10_cat_dog_ship"]
)
def test_what_is_no_pair_is_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' is no pair of classes.*airplane, automobile"):
        data.task(name)


def test_other_images_are_another_fingerprint(raw, tmp_path):
    one = data.load("cifar10", tmp_path, ANY)
    other = data.load("cifar10_cat_dog", tmp_path, ANY)
    path = tmp_path / cifar10.FOLDER / "data_batch_1.bin"
    path.write_bytes(records(20, 1).tobytes())
    assert len({one.fingerprint, other.fingerprint, data.load("cifar10", tmp_path, ANY).fingerprint}) == 3


def test_a_file_that_is_not_the_published_one_is_refused_by_its_checksum(raw, tmp_path):
    with pytest.raises(data.WrongDataError, match=r"data_batch_1\.bin is not the published file.*cee916563c"):
        data.load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has 0 bytes: not whole records"),
        (records(2).tobytes()[:-1], "has 6,145 bytes: not whole records of 1 label and 3,072 pixels"),
        (bytes([10]) + bytes(3072), "record 0 has label 10, there are 0 to 9"),
    ],
)
def test_a_damaged_file_is_refused(raw, tmp_path, content, said):
    (tmp_path / cifar10.FOLDER / "test_batch.bin").write_bytes(content)
    with pytest.raises(data.WrongDataError, match=said):
        data.load("cifar10", tmp_path, ANY)


def test_a_sheet_of_pixels_becomes_the_official_records():
    official = records(4)
    planes = official[:, 1:].reshape(4, 3, 1024)
    sheet = np.stack([planes[:, channel] for channel in range(3)], axis=-1)  # an image a line, RGB a pixel
    assert cifar10_fetch.record_bytes(sheet, official[:, 0]) == official.tobytes()


def test_files_that_are_here_are_not_fetched_and_a_wrong_one_is_refused(raw, tmp_path, monkeypatch):
    with pytest.raises(data.WrongDataError, match=r"data_batch_1\.bin is not the published file"):
        cifar10_fetch.fetch_files(tmp_path, print)
    sums = {name: hashlib.sha256(batch.tobytes()).hexdigest() for name, batch in raw.items()}
    monkeypatch.setattr(cifar10_fetch, "SHA256", sums)
    assert cifar10_fetch.fetch_files(tmp_path, print) == []


def test_the_real_files_are_the_published_ones_and_balanced(real_data):
    root = real_data(*data.task("cifar10").files)
    ds = data.load("cifar10", root)
    s = ds.stream()
    assert_array_equal(np.bincount(s.open(np.zeros((10_000, 10)))), np.full(10, 1_000))
    pair = data.load("cifar10_airplane_automobile", root)
    assert pair.stream().open(np.zeros(2_000)).sum() == 1_000
