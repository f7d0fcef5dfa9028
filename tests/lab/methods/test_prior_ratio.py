import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ploc_lab.methods import SourceInfo, build

HELOC = SourceInfo(np.array([0.759, 0.241]))


def test_heloc_is_shifted_by_its_log_odds():
    scores = build("prior_ratio", None, HELOC).replay(np.array([0.0, -1.147])).scores
    np.testing.assert_allclose(scores, [1.147, 0.0], atol=5e-4)  # the shift that the field guide quotes


def test_it_is_the_posterior_under_equal_rates():
    """Bayes by hand: divide each posterior by its class rate and normalise."""
    rng = np.random.default_rng(0)
    prior = np.array([0.2, 0.5, 0.3])
    z = rng.normal(size=(20, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) / prior
    answer = build("prior_ratio", None, SourceInfo(prior)).replay(z, batch=6)
    np.testing.assert_allclose(answer.probs, p / p.sum(axis=1, keepdims=True), rtol=1e-12)


def test_tau_zero_is_the_source():
    z = np.linspace(-3, 3, 7)
    assert np.array_equal(build("prior_ratio", None, HELOC, tau=0.0).replay(z).scores, z)
    with pytest.raises(ValueError, match="tau"):
        build("prior_ratio", None, HELOC, tau=np.inf)


@given(st.floats(0.01, 0.99), st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_the_moved_threshold_decides_as_the_moved_logits_do(rate, values):
    z = np.array(values)
    source = SourceInfo(np.array([1 - rate, rate]))
    ratio, threshold = (build(name, None, source).replay(z) for name in ("prior_ratio", "prior_threshold"))
    clear = np.abs(ratio.scores) > 1e-9
    assert np.array_equal((ratio.probs >= 0.5)[clear], (threshold.probs >= 0.5)[clear])
    assert np.array_equal(threshold.scores, z)
    assert np.all(np.diff(threshold.probs[np.argsort(z)]) >= -1e-15)


def test_the_stretch_is_linear_on_either_side():
    z = np.log([0.241 / 0.759, 0.1205 / 0.8795, 0.6205 / 0.3795])  # P = pi, pi / 2, halfway from pi to 1
    probs = build("prior_threshold", None, HELOC).replay(z).probs
    np.testing.assert_allclose(probs, [0.5, 0.25, 0.75], rtol=1e-12)


def test_a_threshold_is_for_two_classes():
    with pytest.raises(ValueError, match="prior_ratio"):
        build("prior_threshold", None, SourceInfo(np.full(3, 1 / 3))).replay(np.zeros((2, 3)))
