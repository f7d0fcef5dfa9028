import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.rlls import regularised


def objective(theta, matrix, target, penalty):
    return np.linalg.norm(matrix @ theta - target) + penalty * np.linalg.norm(theta)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.integers(0, 10_000), st.floats(1e-3, 0.5), st.booleans())
def test_no_feasible_theta_does_better(k, seed, penalty, singular):
    """Against scipy's own descent from several starts, and against random points of the feasible set."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(k * k)).reshape(k, k)
    if singular:
        matrix[1:] = 0.0
    target = rng.dirichlet(np.ones(k)) - matrix.sum(axis=1)
    theta = regularised(matrix, target, penalty)
    assert np.all(theta >= -1 - 1e-12)
    ours = objective(theta, matrix, target, penalty)
    for start in (np.zeros(k) + 0.01, theta + rng.normal(size=k) * 0.1, rng.uniform(-1, 3, k)):
        found = minimize(
            objective, np.maximum(start, -1), args=(matrix, target, penalty), bounds=[(-1, None)] * k
        )
        assert ours <= found.fun + 1e-6
    around = np.maximum(theta + rng.normal(size=(200, k)) * 10 ** rng.uniform(-6, 0, (200, 1)), -1)
    assert ours <= min(objective(point, matrix, target, penalty) for point in around) + 1e-9


def test_a_penalty_that_outweighs_the_evidence_leaves_the_source():
    assert np.array_equal(regularised(np.eye(2) / 2, np.array([0.1, -0.1]), 0.6), [0, 0])
    assert np.array_equal(regularised(np.eye(2) / 2, np.zeros(2), 0.1), [0, 0])


def sample(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 2
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return SourceInfo(np.bincount(y) / n, Validation(np.zeros((n, 1), np.float32), y, z))


def test_the_penalty_is_the_papers_number():
    method = build("rlls", None, sample(n=1000))
    spread = 2 * math.log(2 * 2 / 0.05)
    assert method.penalty == pytest.approx(0.01 * 3 * (spread / 3000 + math.sqrt(spread / 1000)), rel=1e-12)


def test_without_a_penalty_it_is_bbse_where_that_is_not_clipped():
    source, z = sample(), np.random.default_rng(1).normal(0.3, 2, 500)
    free = build("rlls", None, source, alpha=0.0).replay(z, batch=500).scores
    np.testing.assert_allclose(free, build("bbse_hard", None, source).replay(z, batch=500).scores, atol=1e-8)


def test_one_row_is_an_indicator_that_ends_in_a_finite_vertex_or_against_a_big_penalty_nowhere():
    z = np.random.default_rng(2).normal(size=50)
    stack = np.stack([np.zeros(50), z], axis=1)[:, None, :]
    w = build("rlls", None, sample()).weights(stack)
    assert np.all(w[np.arange(50), (z <= 0).astype(int)] == 0)
    assert np.all(w[np.arange(50), (z > 0).astype(int)] > 2)
    assert w.max() < 3
    assert np.array_equal(build("rlls", None, sample(), alpha=3.0).weights(stack), np.ones((50, 2)))


def test_a_source_that_predicts_one_class_is_no_obstacle():
    z = np.array([-3.0, -2.0, -1.0, -0.5])
    source = SourceInfo(
        np.array([0.5, 0.5]), Validation(np.zeros((4, 1), np.float32), np.array([0, 1, 0, 1]), z)
    )
    method = build("rlls", None, source)
    assert np.isfinite(method.replay(np.array([1.0, -1.0]), batch=2).scores).all()
    assert method.report()["skipped"] == {}


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"delta": 0.0}, {"delta": 1.0}])
def test_constants_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=r"alpha|delta"):
        build("rlls", None, sample(), **options)
