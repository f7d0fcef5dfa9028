"""The paper's propositions as properties: each would fail on a stream for which the paper is wrong."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import PLOC, deferred, metrics, origin, theory

# Multiples of 1/8 make ties and knife edges common; what they lose in generality the floats below have.
eighths = st.integers(-24, 24).map(lambda k: k / 8)
logits = st.one_of(eighths, st.floats(-30, 30))


@st.composite
def labelled(draw, elements=logits):
    n = draw(st.integers(2, 40))
    z = draw(st.lists(elements, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(z), np.array(y)


def shifts_of(z):
    c = PLOC()
    shifts = []
    for value in z.tolist():
        shifts.append(c.shift)
        c.observe(value)
    return np.array(shifts)


def gaps(z):
    """|z_i - z_j| and |mu_i - mu_j| of every two rows."""
    mu = shifts_of(z)
    return np.abs(z[:, None] - z), np.abs(mu[:, None] - mu)


def pairs_by_hand(z, y):
    """I_T of Proposition 2, pair by pair."""
    D, M = gaps(z)
    return int((D <= M)[np.ix_(y == 1, y == 0)].sum())


def knife_edges(z, y):
    """Pairs that rounding alone decides."""
    D, M = gaps(z)
    return int(((np.abs(D - M) < 1e-12) & (D > 0))[np.ix_(y == 1, y == 0)].sum())


@given(labelled(elements=eighths))
def test_pairs_are_those_of_brute_force(case):
    z, y = case
    powers = len(z) & (len(z) - 1)  # means over 2^k rows are exact; others may round at a knife edge
    d = theory.drift_bound(z, y)
    expected = pairs_by_hand(z, y)
    assert abs(d.pairs - expected) <= (powers != 0) * knife_edges(z, y)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_those_of_brute_force_on_random_streams(seed):
    rng = np.random.default_rng(seed)
    z = np.round(rng.normal(-1, 2, size=300), rng.integers(1, 8))
    y = (rng.random(300) < 0.3).astype(int)
    assert abs(theory.drift_bound(z, y).pairs - pairs_by_hand(z, y)) <= knife_edges(z, y)
    D, M = gaps(z)
    everyone = int((D <= M)[np.triu_indices(300, 1)].sum())
    assert abs(theory.label_free_bound(z).pairs - everyone) <= knife_edges(z, y) + knife_edges(z, 1 - y) + 30


@given(labelled())
def test_proposition_2_bounds_the_drift(case):
    z, y = case
    d = theory.drift_bound(z, y)
    if 0 < y.sum() < len(y):
        assert abs(d.drift) <= d.bound + 1e-12
        assert d.auroc_source == metrics.auroc(z, y)
        assert d.auroc_ploc == metrics.auroc(PLOC().replay(z, logits=True), y)
        free = theory.label_free_bound(z)
        assert d.bound <= free.bound(int(y.sum())) + 1e-12
    else:
        assert d.pairs == 0
        assert math.isnan(d.bound)
        assert math.isnan(d.auroc_ploc)


@given(labelled())
def test_every_pair_whose_order_changes_is_among_the_pairs(case):
    """The first half of Proposition 2, pair by pair and not on average."""
    z, y = case
    mu, centred = shifts_of(z), PLOC().replay(z, logits=True)
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            if np.sign(z[i] - z[j]) != np.sign(centred[i] - centred[j]):
                assert abs(z[i] - z[j]) <= abs(mu[i] - mu[j]) + 1e-12


@given(labelled(elements=st.integers(-3, 3).map(lambda k: k / 10)))
def test_rounding_never_hides_a_pair_that_changed(case):
    """At a knife's edge rounding decides whether a pair counts, but what changed its order always does."""
    z, y = case
    centred = PLOC().replay(z, logits=True)
    before, after = (np.sign(s[:, None] - s)[np.ix_(y == 1, y == 0)] for s in (z, centred))
    assert int((before != after).sum()) <= theory.drift_bound(z, y).pairs


def test_the_bound_vanishes_along_a_stationary_stream():
    """The second half: with a settling mean and few logits together, |I_T| / (n+ n-) goes to 0."""
    rng = np.random.default_rng(0)
    y = (rng.random(64_000) < 0.4).astype(int)
    z = rng.normal(y - 1.5, 1.0)
    bounds = [theory.drift_bound(z[:T], y[:T]).bound for T in (1_000, 8_000, 64_000)]
    assert all(later < 0.5 * earlier for earlier, later in pairwise(bounds))
    assert bounds[-1] < 0.01


@given(labelled(elements=eighths), st.integers(-64, 64).map(lambda k: k / 16))
def test_proposition_1_deferred_keeps_ranking_and_auroc_to_the_last_bit(case, shift):
    """Sixteenths subtract exactly: not even rounding may move a rank."""
    z, y = case
    assert theory.reordered(z, z - shift) == 0
    if 0 < y.sum() < len(y):
        assert metrics.auroc(z - shift, y) == metrics.auroc(z, y)


@given(labelled(elements=st.floats(-30, 30)))
def test_proposition_1_on_any_stream_nothing_is_ever_swapped(case):
    """Rounding may tie logits closer than an ulp of the shift, it never swaps two."""
    z, _ = case
    centred = PLOC()
    centred.observe(z)
    moved = centred.predict(z, logits=True)
    order = np.argsort(z, kind="stable")
    assert np.all(np.diff(moved[order]) >= 0)
    probs, _ = deferred(z)
    assert np.all(np.diff(probs[order]) >= 0)


def test_proposition_1_on_a_long_random_stream_is_exact():
    rng = np.random.default_rng(1)
    z, y = rng.normal(-3, 2, size=50_000), rng.integers(0, 2, 50_000)
    c = PLOC()
    c.observe(z)
    centred = c.predict(z, logits=True)
    assert theory.reordered(z, centred) == 0
    assert metrics.auroc(centred, y) == metrics.auroc(z, y)


@given(
    arrays(np.float64, (25, 4), elements=eighths),
    st.lists(st.integers(0, 3), min_size=25, max_size=25),
    st.lists(st.integers(-64, 64).map(lambda k: k / 16), min_size=4, max_size=4),
)
def test_remark_1_one_vs_one_is_preserved_to_the_last_bit(Z, y, shift):
    before, after = metrics.auroc_ovo(Z, y), metrics.auroc_ovo(Z - np.array(shift), y)
    assert before == after or (math.isnan(before) and math.isnan(after))


def test_remark_1_one_vs_rest_is_not():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 500)
    Z = rng.normal(size=(500, 3)) + 2 * np.eye(3)[y] + np.array([2.0, 0.0, -1.0])
    probs, _ = deferred(Z)
    source = metrics.auroc_ovr(np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True), y)
    assert abs(metrics.auroc_ovr(probs, y) - source) > 1e-3


@given(st.integers(1, 40), st.data())
def test_proposition_3_no_unbiased_linear_origin_has_less_variance_than_the_mean(rows, data):
    raw = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=rows, max_size=rows)))
    w = raw + (1 - raw.sum()) / rows  # sums to one
    assert np.sum(w**2) >= theory.variance(origin.Mean(), rows) - 1e-12
    for kind in (origin.EMA(0.2), origin.Window(5)):
        weights = theory.weights(kind, rows)
        assert weights.sum() == pytest.approx(1.0)
        assert theory.variance(kind, rows) >= theory.variance(origin.Mean(), rows) - 1e-12


def test_proposition_3_variances_have_their_closed_forms():
    assert theory.variance(origin.Mean(), 50) == pytest.approx(1 / 50)
    assert theory.variance(origin.Window(10), 50) == pytest.approx(1 / 10)
    a, n = 0.1, 50
    decay = (1 - a) ** 2
    expected = decay ** (n - 1) + a * a * (1 - decay ** (n - 1)) / (1 - decay)
    assert theory.variance(origin.EMA(a), n) == pytest.approx(expected)


def test_proposition_3_by_simulation():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(200, 4000))  # 200 rows of 4000 independent streams at once
    for kind in (origin.Mean(), origin.EMA(0.05), origin.Window(20)):
        row = origin.columns(kind, 4000)
        row.trail(noise)
        assert np.var(row.shift) == pytest.approx(theory.variance(kind, 200), rel=0.12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.drift_bound([[1.0]], [1]), r"shape \(1, 1\); a stream of relative logits is \(T,\)"),
        (lambda: theory.drift_bound([1.0, math.nan], [0, 1]), "logit of row 1 is nan"),
        (lambda: theory.drift_bound([1.0, 2.0], [0, 3]), "label of row 1"),
        (lambda: theory.label_free_bound([1.0, 2.0]).bound(2), "between 0 and 2 rows, got 2"),
        (lambda: theory.reordered([1.0], [1.0, 2.0]), "1 logits do not go with 2"),
        (lambda: theory.weights(origin.Mean(), 0), "at least 1, got 0"),
        (lambda: theory.variance(origin.Median(), 5), r"Median\(\) is not linear"),
        (lambda: theory.weights(origin.Huber(), 5), r"Huber\(2.5\) is not linear"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
