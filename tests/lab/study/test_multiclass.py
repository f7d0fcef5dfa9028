"""What is measured of K classes, against counting and closed forms."""

import doctest
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ploc_lab.study import multiclass

RNG = np.random.default_rng(3)


def some(rows: int, classes: int) -> np.ndarray:
    return RNG.dirichlet(np.ones(classes), rows)


def counted(probs: np.ndarray, y: np.ndarray) -> float:
    """One-vs-rest AUROC pair by pair: a positive above a negative is one, a tie one half."""
    areas = []
    for k in range(probs.shape[1]):
        above, below = probs[y == k, k], probs[y != k, k]
        if len(above) and len(below):
            areas.append(np.mean([(a > b) + 0.5 * (a == b) for a, b in product(above, below)]))
    return float(np.mean(areas))


def test_one_vs_rest_is_the_mean_over_classes_of_the_pairs_in_order():
    probs, y = some(40, 4).round(1), RNG.integers(0, 4, 40)
    assert multiclass.measure(probs, y)["auroc_ovr"] == pytest.approx(counted(probs, y))


def test_a_class_without_rows_is_left_out_and_one_class_alone_has_no_area():
    probs = some(6, 3)
    y = np.array([0, 1, 0, 1, 0, 1])
    assert multiclass.measure(probs, y)["auroc_ovr"] == pytest.approx(counted(probs, y))
    assert multiclass.measure(probs, np.zeros(6, int))["auroc_ovr"] is None


@given(st.integers(2, 12))
def test_the_surest_row_lies_between_certain_and_uniform(classes):
    uniform = np.full((3, classes), 1 / classes)
    certain = np.eye(classes)[:1]
    y = np.zeros(3, int)
    assert multiclass.measure(uniform, y)["entropy_least"] == pytest.approx(np.log(classes))
    both = np.concatenate([uniform, certain])
    assert multiclass.measure(both, np.zeros(4, int))["entropy_least"] == 0


def test_the_surest_row_is_that_of_the_least_entropy():
    probs = some(50, 10)
    each = [-sum(p * np.log(p) for p in row) for row in probs]
    assert multiclass.measure(probs, np.zeros(50, int))["entropy_least"] == pytest.approx(min(each))


def test_the_class_answered_most_and_its_share():
    probs = np.eye(3)[[2, 2, 1, 2, 0]]
    found = multiclass.measure(probs, np.array([0, 1, 2, 0, 1]))
    assert (found["top_class"], found["top_share"]) == (2, 0.6)


def test_the_examples_run():
    result = doctest.testmod(multiclass)
    assert result.attempted
    assert not result.failed
