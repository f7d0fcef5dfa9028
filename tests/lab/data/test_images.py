"""Pools and streams of images: corrupted, long-tailed, and sealed like any other."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ploc_lab.data import SealedError, cifar10, long_tail
from ploc_lab.data.corruptions import Corruption
from ploc_lab.data.images import ImageDataset

NOISE = Corruption("gaussian_noise", 0.3)
RNG = np.random.default_rng(0)
TEST = RNG.integers(0, 256, size=(200, 3072), dtype=np.uint8)
TEST_Y = RNG.permutation(np.arange(200) % 10).astype(np.uint8)
PREDICTED = np.zeros((200, 10))


@pytest.fixture
def ds():
    train = RNG.integers(0, 256, size=(40, 3072), dtype=np.uint8)
    y = np.concatenate([(np.arange(40) % 10).astype(np.uint8), TEST_Y])
    return ImageDataset(cifar10.TASK, train, TEST, y, "a digest")


def test_a_pool_is_the_target_corrupted_and_its_name_tells_its_bytes(ds):
    assert ds.pool() == "ood_test"
    name = ds.pool(NOISE)
    assert name.startswith("gaussian_noise=0.3-")
    assert_array_equal(ds.part(name).rows(), NOISE(TEST).astype(np.float32) / 255)
    assert ds.pool(Corruption("gaussian_noise", 0.2)) != name
    assert ds.pool(NOISE) == name


def test_a_corrupted_stream_has_the_clean_ones_labels_in_the_same_order(ds):
    clean, noisy = ds.stream(), ds.stream(corruption=NOISE)
    assert_array_equal(noisy.rows(), NOISE(TEST).astype(np.float32) / 255)
    assert_array_equal(noisy.open(PREDICTED), TEST_Y)
    assert_array_equal(clean.open(PREDICTED), noisy.open(PREDICTED))
    assert len(ds.stream(corruption=NOISE, limit=7)) == 7


def test_no_door_to_the_labels_is_open(ds):
    with pytest.raises(SealedError):
        _ = ds.part(ds.pool(NOISE)).y
    for stream in (ds.stream(corruption=NOISE), ds.stream("permuted", rho=10)):
        with pytest.raises(SealedError):
            _ = stream.y
        with pytest.raises(SealedError):
            stream.open(np.zeros((3, 10)))


def test_a_long_tail_has_its_sizes_and_no_image_twice(ds):
    stream = ds.stream("permuted", rho=10, corruption=NOISE)
    y = stream.open(np.zeros((len(stream), 10)))
    assert_array_equal(np.bincount(y), long_tail.sizes(20, 10, 10))
    assert len(set(stream.index.tolist())) == len(stream)
    assert_array_equal(stream.rows(), ds.stream(corruption=NOISE).rows(stream.index))
    assert_array_equal(y, TEST_Y[stream.index])
    assert stream.order == "permuted"


def test_a_long_tail_is_the_same_each_time_and_another_for_another_seed(ds):
    one, two, other = (ds.stream("permuted", seed, rho=10).index for seed in (0, 0, 1))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_sizes_are_those_of_the_papers_streams():
    # 464 of 4,084 and 215 of 2,478 are cats: .114 and .087, the paper's extremes for a constant answer.
    ten, hundred = long_tail.sizes(1_000, 10, 10), long_tail.sizes(1_000, 10, 100)
    assert ten == [1000, 774, 599, 464, 359, 278, 215, 166, 129, 100]
    assert hundred == [1000, 599, 359, 215, 129, 77, 46, 27, 16, 10]
    assert (sum(ten), sum(hundred)) == (4_084, 2_478)


@given(st.integers(2, 12), st.integers(1, 2_000), st.floats(1, 200))
def test_sizes_fall_from_all_to_rho_times_fewer(classes, rarest, rho):
    found = long_tail.sizes(rarest, classes, rho)
    assert found[0] == rarest
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(rarest / rho, abs=1)


def test_bad_wishes_are_refused(ds):
    with pytest.raises(ValueError, match="rho, the first class over the last, must be 1 or more, got nan"):
        ds.stream("permuted", rho=float("nan"))
    with pytest.raises(ValueError, match="order must be 'permuted', got 'split'"):
        ds.stream(rho=10)
    with pytest.raises(ValueError, match="has 10 classes: draw a long tail"):
        ds.stream("permuted", positive_rate=0.5)
    with pytest.raises(ValueError, match=r"rows of every class, there are \[2, 0, 1\]"):
        long_tail.draw(np.array([0, 0, 2]), 10, 0)
    with pytest.raises(ValueError, match="no split is called 'gaussian_noise'"):
        ds.part("gaussian_noise")


@pytest.mark.parametrize("module", [long_tail, cifar10], ids=lambda module: module.__name__)
def test_the_examples_run(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
