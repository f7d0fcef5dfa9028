import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.temperature import fit


@pytest.fixture(scope="module")
def oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the oracle's own imports are deprecated
        return pytest.importorskip("abstention.calibration")


def sample(classes=2, n=1500, seed=0, slope=0.6, bias=0.4):
    """Logits whose truth is drawn from slope * z + bias (on the last class)."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, classes)) * 2
    true = slope * rows
    true[:, -1] += bias
    p = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    z = rows[:, 1] - rows[:, 0] if classes == 2 else rows
    return SourceInfo(
        np.bincount(y, minlength=classes) / n, Validation(np.zeros((n, 1), np.float32), y, z)
    ), rows


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_temperature_and_bcts_are_those_of_the_authors_code(oracle, classes, biased):
    source, rows = sample(classes)
    if classes == 2:
        rows = np.stack([np.zeros(len(rows)), rows[:, 1] - rows[:, 0]], axis=1)
    y = source.validation.y
    ours = fit(rows, y, biased=biased)
    positions = list(range(classes)) if biased else []
    theirs = oracle.TempScaling(bias_positions=positions)(rows, np.eye(classes)[y])(rows)
    p = np.exp(ours(rows))
    np.testing.assert_allclose(p / p.sum(axis=1, keepdims=True), theirs, atol=2e-4)


def test_platt_is_logistic_regression_without_penalty():
    source, _ = sample()
    z, y = source.validation.logits, source.validation.y
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], y)
    new = np.linspace(-4, 4, 9)
    answer = build("platt", None, source).replay(new, batch=4)
    np.testing.assert_allclose(answer.probs, model.predict_proba(new[:, None])[:, 1], atol=1e-5)


def test_platt_may_turn_an_anti_informative_network_round_and_a_temperature_may_not():
    source, _ = sample(slope=-0.8, bias=0.0)
    z = np.array([2.0])
    assert build("platt", None, source).replay(z).probs[0] < 0.3
    assert 0.5 <= build("temperature", None, source).replay(z).probs[0] < 0.51


@pytest.mark.parametrize("classes", [2, 3])
def test_the_temperature_is_a_stationary_point_and_scales_with_the_logits(classes):
    source, _ = sample(classes, slope=0.5, bias=0.0)
    method = build("temperature", None, source)
    sample_ = source.validation

    def nll(t):
        z = np.stack([0 * sample_.logits, sample_.logits], 1) if classes == 2 else sample_.logits
        log_p = z / t - np.log(np.exp(z / t).sum(axis=1, keepdims=True))
        return -log_p[np.arange(len(log_p)), sample_.y].mean()

    assert nll(method.temperature) < min(nll(method.temperature * 1.01), nll(method.temperature / 1.01))
    assert method.temperature == pytest.approx(2, rel=0.15)
    tripled = SourceInfo(source.prior, Validation(sample_.x, sample_.y, 3 * sample_.logits))
    assert build("temperature", None, tripled).temperature == pytest.approx(3 * method.temperature, rel=1e-5)


def test_the_ranking_is_kept():
    source, _ = sample()
    z = np.random.default_rng(9).normal(size=100) * 5
    assert np.array_equal(np.argsort(build("temperature", None, source).replay(z).scores), np.argsort(z))


def test_separable_rows_stop_at_a_bound():
    z = np.array([-1.0, -2.0, 1.0, 2.0])
    scaling = fit(np.stack([0 * z, z], 1), np.array([0, 0, 1, 1]), biased=True)
    assert 1 < scaling.slope <= 1e3
    assert np.isfinite(scaling.bias).all()


@pytest.mark.parametrize("y", [[0, 0, 0], [0, 1], [0, 1, 2]])
def test_labels_that_fit_nothing_are_refused(y):
    with pytest.raises(ValueError, match="label from 0 to 1"):
        fit(np.zeros((3, 2)), np.array(y), biased=False)
