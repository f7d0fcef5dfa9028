"""Corruptions against their closed forms, scikit-image's and matplotlib's definitions, and each other."""

import colorsys
import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ploc_lab.data import corruptions
from ploc_lab.data.corruptions import KINDS, PROFILES, SEVERITIES, Corruption, find

IMAGES = np.random.default_rng(4).integers(0, 256, size=(12, 3072), dtype=np.uint8)


def test_every_profile_has_every_kind_and_severity_and_worse_is_stronger():
    for profile in PROFILES:
        for kind in KINDS:
            three, five = (find(kind, severity, profile).amount for severity in SEVERITIES)
            assert (five < three) if kind == "contrast" else (five > three)


def test_the_citable_profile_is_the_published_one():
    # hendrycks/robustness, make_cifar_c.py: c = [...][severity - 1]
    published = {
        "gaussian_noise": [0.04, 0.06, 0.08, 0.09, 0.10],
        "brightness": [0.05, 0.1, 0.15, 0.2, 0.3],
        "contrast": [0.75, 0.5, 0.4, 0.3, 0.15],
        "gaussian_blur": [0.4, 0.6, 0.7, 0.8, 1.0],
    }
    for kind, amounts in published.items():
        assert [find(kind, s, "cifar10c").amount for s in SEVERITIES] == [amounts[2], amounts[4]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_each_time_and_the_argument_is_left_alone(kind):
    before = IMAGES.copy()
    one, two = Corruption(kind, 0.3)(IMAGES), Corruption(kind, 0.3)(IMAGES)
    assert_array_equal(one, two)
    assert_array_equal(IMAGES, before)
    assert one.dtype == np.uint8
    assert one.shape == IMAGES.shape


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_corrupted_alike_whatever_follows_it(kind, monkeypatch):
    whole = Corruption(kind, 0.3)(IMAGES)
    assert_array_equal(Corruption(kind, 0.3)(IMAGES[:5]), whole[:5])
    monkeypatch.setattr(corruptions, "CHUNK", 5)
    assert_array_equal(Corruption(kind, 0.3)(IMAGES), whole)


def test_noise_has_its_size_and_no_mean():
    grey = np.full((40, 3072), 128, dtype=np.uint8)
    noise = Corruption("gaussian_noise", 0.08)(grey) / 255 - 128 / 255
    # 122,880 values: the mean is off by half a byte (cut off, not rounded), errors are 3 standard errors.
    assert noise.mean() == pytest.approx(-0.5 / 255, abs=3 * 0.08 / np.sqrt(noise.size))
    assert noise.std() == pytest.approx(0.08, abs=3 * 0.08 / np.sqrt(2 * noise.size))
    assert len(np.unique(noise[:, 0])) > 20  # not one noise for all images


def test_brightness_is_hsv_with_more_v():
    changed = Corruption("brightness", 0.3)(IMAGES).reshape(-1, 3, 1024)
    before = IMAGES.reshape(-1, 3, 1024) / 255
    for image, pixel in ((0, 0), (1, 500), (7, 1023), (11, 3)):
        h, s, v = colorsys.rgb_to_hsv(*before[image, :, pixel])
        expected = np.array(colorsys.hsv_to_rgb(h, s, min(v + 0.3, 1.0))) * 255
        assert_allclose(changed[image, :, pixel], expected, atol=1)


def test_black_turns_grey_under_brightness():
    assert_array_equal(Corruption("brightness", 0.5)(np.zeros((1, 3072), np.uint8)), np.full((1, 3072), 127))


def test_contrast_keeps_each_channels_mean_and_shrinks_its_spread():
    changed = Corruption("contrast", 0.4)(IMAGES).reshape(-1, 3, 1024).astype(float)
    before = IMAGES.reshape(-1, 3, 1024).astype(float)
    assert_allclose(changed.mean(axis=2), before.mean(axis=2) - 0.5, atol=0.1)  # cut off: half a byte lower
    assert_allclose(changed.std(axis=2), 0.4 * before.std(axis=2), rtol=0.01)


def test_blur_leaves_flat_images_and_spreads_a_point_by_the_kernel():
    flat = np.full((1, 3072), 77, dtype=np.uint8)
    assert np.abs(Corruption("gaussian_blur", 2.5)(flat).astype(int) - flat).max() <= 1
    point = np.zeros((1, 3, 32, 32), dtype=np.uint8)
    point[0, 1, 16, 16] = 255
    blurred = Corruption("gaussian_blur", 1.0)(point.reshape(1, -1)).reshape(3, 32, 32)
    weights = np.exp(-(np.arange(-4, 5) ** 2) / 2)
    kernel = np.outer(weights, weights) / weights.sum() ** 2
    assert_array_equal(blurred[1, 12:21, 12:21], np.floor(kernel * 255 + 1e-9))
    assert not blurred[0].any()  # channels are blurred apart
    assert not blurred[2].any()


def test_blur_repeats_the_edge():
    half = np.zeros((1, 3, 32, 32), dtype=np.uint8)
    half[..., :16] = 200
    blurred = Corruption("gaussian_blur", 1.0)(half.reshape(1, -1)).reshape(3, 32, 32).astype(int)
    assert np.abs(blurred[0, :, 0] - 200).max() <= 1
    assert blurred[0, 5, 31] == 0


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.5, 2.5])
def test_blur_is_the_weighted_sum_over_four_sigmas_with_the_edge_repeated(sigma):
    radius = int(4 * sigma + 0.5)
    weights = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    wide = np.pad(IMAGES.reshape(-1, 3, 32, 32) / 255, [(0, 0), (0, 0), *[(radius, radius)] * 2], mode="edge")
    rows = sum(w * wide[:, :, i : i + 32] for i, w in enumerate(weights))
    both = sum(w * rows[..., i : i + 32] for i, w in enumerate(weights))
    off = Corruption("gaussian_blur", sigma)(IMAGES).reshape(both.shape) - np.floor(both * 255)
    assert np.abs(off).max() <= 1
    assert (off != 0).mean() < 1e-3  # sums in another order, where a value lies on a whole byte


def test_every_byte_survives_its_way_to_a_value_and_back():
    every = np.resize(np.arange(256, dtype=np.uint8), (1, 3072))
    assert_array_equal((every / 255.0 * 255).astype(np.uint8), every)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: find("fog", 3, "paper"), "no corruption is called 'fog'; there are: gaussian_noise"),
        (lambda: find("contrast", 4, "paper"), r"severity must be one of \(3, 5\), got 4"),
        (
            lambda: find("contrast", 3, "imagenet"),
            "no profile is called 'imagenet'; there are: cifar10c",
        ),
        (lambda: Corruption("fog", 1.0), "no corruption is called 'fog'"),
        (lambda: Corruption("contrast", float("nan")), "contrast needs a positive amount, got nan"),
    ],
)
def test_what_is_no_corruption_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_the_examples_run():
    result = doctest.testmod(corruptions)
    assert result.attempted
    assert not result.failed
