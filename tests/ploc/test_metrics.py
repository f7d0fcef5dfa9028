"""The metrics against scikit-learn, and the edges of their definitions by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from ploc import links, metrics


@st.composite
def binary(draw):
    n = draw(st.integers(2, 60))
    probs = draw(st.lists(st.sampled_from([k / 32 for k in range(33)]), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(probs), np.array(y)


@given(binary())
def test_the_seven_agree_with_scikit_learn(case):
    probs, y = case
    m = metrics.evaluate(probs, y)
    decided = (probs >= 0.5).astype(int)
    assert m.accuracy == pytest.approx(oracle.accuracy_score(y, decided))
    assert m.f1 == pytest.approx(oracle.f1_score(y, decided, zero_division=0))
    assert m.brier == pytest.approx(oracle.brier_score_loss(y, probs))
    assert m.nll == pytest.approx(oracle.log_loss(y, np.clip(probs, 1e-6, 1 - 1e-6), labels=[0, 1]))
    if len(set(y.tolist())) == 2:
        assert m.balanced_accuracy == pytest.approx(oracle.balanced_accuracy_score(y, decided))
        assert m.auroc == pytest.approx(oracle.roc_auc_score(y, probs))
        assert not m.undefined
    else:
        assert math.isnan(m.auroc)
        assert math.isnan(m.balanced_accuracy)
        assert m.undefined == {
            "auroc": f"all rows are of class {y[0]}",
            "balanced_accuracy": f"no row of class {1 - y[0]}",
        }


@given(binary())
def test_ece_is_its_sum_over_bins(case):
    probs, y = case
    confidence = np.maximum(probs, 1 - probs)
    hit = (probs >= 0.5) == y
    total = 0.0
    for m in range(15):
        low, high = m / 15, (m + 1) / 15
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += inside.sum() / len(y) * abs(hit[inside].mean() - confidence[inside].mean())
    assert metrics.ece(probs, y) == pytest.approx(total)


def test_half_is_decided_as_positive():
    assert metrics.evaluate([0.5, 0.5], [1, 0]).accuracy == 0.5
    assert metrics.evaluate([0.5], [1]).accuracy == 1.0


def test_f1_is_zero_where_nothing_is_positive():
    assert metrics.evaluate([0.1, 0.2], [0, 0]).f1 == 0.0


def test_auroc_reads_the_scores_where_sigmoids_have_saturated():
    z = np.array([40.0, 50.0, 60.0, 70.0])
    y = [0, 1, 0, 1]
    assert links.sigmoid(z).tolist() == [1.0] * 4
    assert metrics.evaluate(links.sigmoid(z), y).auroc == 0.5
    assert metrics.evaluate(links.sigmoid(z), y, scores=z).auroc == 0.75


def test_nll_clips_at_a_millionth():
    assert metrics.evaluate([0.0], [1]).nll == pytest.approx(-math.log(1e-6))
    assert metrics.evaluate([1.0, 1.0], [1, 1]).nll == pytest.approx(-math.log(1 - 1e-6))


@pytest.fixture
def three_classes():
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(300, 3)), 1)
    y = (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)
    return Z, y


def test_k_classes_agree_with_scikit_learn(three_classes):
    Z, y = three_classes
    P = links.softmax(Z)
    m = metrics.evaluate(P, y, scores=Z)
    decided = P.argmax(axis=1)
    assert m.accuracy == pytest.approx(oracle.accuracy_score(y, decided))
    assert m.balanced_accuracy == pytest.approx(oracle.balanced_accuracy_score(y, decided))
    assert m.f1 == pytest.approx(oracle.f1_score(y, decided, average="macro"))
    assert m.nll == pytest.approx(oracle.log_loss(y, P))
    assert m.brier == pytest.approx(np.mean(np.sum((P - np.eye(3)[y]) ** 2, axis=1)))
    assert metrics.auroc_ovr(P, y) == pytest.approx(oracle.roc_auc_score(y, P, multi_class="ovr"))


def test_one_vs_one_ranks_by_pairwise_log_odds(three_classes):
    Z, y = three_classes
    areas = []
    for j, k in [(0, 1), (0, 2), (1, 2)]:
        rows = (y == j) | (y == k)
        areas.append(oracle.roc_auc_score(y[rows] == k, Z[rows, k] - Z[rows, j]))
    assert metrics.auroc_ovo(Z, y) == pytest.approx(np.mean(areas))
    assert metrics.evaluate(links.softmax(Z), y, scores=Z).auroc == metrics.auroc_ovo(Z, y)
    assert math.isnan(metrics.auroc_ovo(Z[y != 2], y[y != 2]))


def test_roc_curve_is_scikit_learns_and_its_area_is_auroc():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    s = np.round(rng.normal(size=200) + y, 1)
    fpr, tpr = metrics.roc_curve(s, y)
    expected = oracle.roc_curve(y, s, drop_intermediate=False)
    np.testing.assert_allclose(fpr, expected[0])
    np.testing.assert_allclose(tpr, expected[1])
    assert np.trapezoid(tpr, fpr) == pytest.approx(metrics.auroc(s, y))


def test_reliability_counts_every_row_once():
    rng = np.random.default_rng(2)
    r = metrics.reliability(rng.random(1000), rng.integers(0, 2, 1000))
    assert r.rows.sum() == 1000
    assert np.flatnonzero(r.rows).min() == 7  # binary confidence starts at 1/2: eight bins are used
    assert np.isnan(r.accuracy[:7]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.evaluate([0.5, 1.5], [0, 1]), r"probability of row 1 is 1.5"),
        (lambda: metrics.evaluate([0.5, 0.5], [0, 2]), r"label of row 1 is .*2.*; it must be 0 or 1"),
        (lambda: metrics.evaluate([0.5], [0, 1]), r"labels have shape \(2,\) for 1 rows"),
        (lambda: metrics.evaluate([], []), "at least one row"),
        (lambda: metrics.auroc([1.0, 2.0], np.ma.array([0, 1], mask=[0, 1])), "label of row 1 is masked"),
        (lambda: metrics.evaluate([0.5], [1], scores=[1.0, 2.0]), "scores have shape"),
        (lambda: metrics.ece([0.5], [1], bins=0), "bins must be at least 1, got 0"),
        (lambda: metrics.roc_curve([0.5], [1]), "rows of both classes"),
        (lambda: metrics.auroc([math.nan], [1]), "score of row 0 is nan"),
        (lambda: metrics.auroc([[0.1, 0.9]], [1]), r"shape \(1, 2\); one number a row is taken, such as P"),
        (lambda: metrics.auroc([[0.1], [0.9]], [0, 1]), r"scores have shape \(2, 1\)"),
        (lambda: metrics.roc_curve([[0.1, 0.9], [0.2, 0.8]], [0, 1]), r"scores have shape \(2, 2\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
