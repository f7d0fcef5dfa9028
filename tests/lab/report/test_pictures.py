"""The streams as pictures: the images, answers and accuracies shown are those of the stream."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ploc_lab.data import cifar10
from ploc_lab.data.images import ImageDataset
from ploc_lab.report import pictures
from ploc_lab.study.cell import Picture

N = 100
RNG = np.random.default_rng(5)
TEST = RNG.integers(0, 256, size=(N, 3072), dtype=np.uint8)
Y = (np.arange(N) % 10).astype(np.uint8)
Z = RNG.normal(size=(N, 10)) + 2 * np.eye(10)[Y] + np.linspace(0, 3, 10)


@pytest.fixture
def ds():
    train = np.zeros((40, 3072), dtype=np.uint8)
    return ImageDataset(cifar10.TASK, train, TEST, np.concatenate([Y[:40], Y]), "a digest")


@pytest.fixture
def checkpoint():
    """Logits by image, whatever the pool: what a frozen network would give."""
    return SimpleNamespace(logits=lambda _ds, _pool: Z)


def test_an_image_of_each_class_with_its_answers(ds, checkpoint):
    shown = pictures.show(ds, checkpoint, Picture(), warm=30)
    rows = np.arange(30, 40)  # classes come in turn: the first of each from row 30 on
    assert_array_equal(shown.images, TEST[rows].reshape(10, 3, 32, 32).transpose(0, 2, 3, 1))
    before = np.cumsum(Z, axis=0)[rows - 1] / rows[:, None]
    assert_array_equal(shown.source, Z[rows].argmax(axis=1))
    assert_array_equal(shown.ploc_k, (Z[rows] - before).argmax(axis=1))
    assert shown.accuracy[0] == np.mean(Z.argmax(axis=1) == Y)
    assert shown.accuracy[1] > shown.accuracy[0]  # Z leans to the last classes, and a mean takes that out


def test_a_corrupted_stream_shows_the_corrupted_images(ds, checkpoint):
    picture = Picture("contrast", 5, "cifar10c")
    shown = pictures.show(ds, checkpoint, picture, warm=30)
    expected = picture.corrupt()(TEST)[30:40]
    assert_array_equal(shown.images, expected.reshape(10, 3, 32, 32).transpose(0, 2, 3, 1))


def test_a_class_that_does_not_come_again_is_shown_by_its_last_image(ds, checkpoint):
    shown = pictures.show(ds, checkpoint, Picture(rho=10.0), warm=10_000)
    assert shown.images.shape == (10, 32, 32, 3)


def test_the_figure_has_a_tile_a_class_and_is_the_same_each_time(ds, checkpoint):
    shown = [pictures.show(ds, checkpoint, p, 30) for p in (Picture(), Picture("contrast", 5, "paper"))]
    figure = pictures.draw(shown, "paper", 0)
    assert len(figure.axes) == 20
    assert "FITTED" in figure.get_suptitle()
    assert "†" in figure.axes[10].get_ylabel()
    assert "†" not in figure.axes[0].get_ylabel()
    texts = [text.get_text() for text in figure.axes[3].texts]
    assert [text.split()[0] == "✓" for text in texts] == [shown[0].source[3] == 3, shown[0].ploc_k[3] == 3]
    assert pictures.png(figure) == pictures.png(pictures.draw(shown, "paper", 0))
    assert "FITTED" not in pictures.draw(shown, "cifar10c", 0).get_suptitle()


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="no profile is called 'imagenet'; there are: cifar10c, paper"):
        pictures.pictures(profile="imagenet")
