import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ploc_lab.study.stats import holm, paired

FLOATS = st.floats(-10, 10, allow_subnormal=False).map(lambda x: round(x, 3))
ROW = hnp.arrays(np.float64, 8, elements=FLOATS)


def exact_p(d):
    """Wilcoxon by its definition: all ways to sign the ranks, two-sided."""
    ranks = np.argsort(np.argsort(np.abs(d))) + 1
    seen = ranks[d > 0].sum()
    total = ranks.sum()
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product((0, 1), repeat=len(d))
    ]
    low = min(seen, total - seen)
    return min(1.0, 2 * sum(s <= low for s in sums) / len(sums))


@pytest.mark.parametrize("seed", range(5))
def test_p_is_the_share_of_sign_patterns_at_least_as_extreme(seed):
    d = np.random.default_rng(seed).normal(0.4, 1, 9)
    assert paired(d, np.zeros(9)).p == pytest.approx(exact_p(d))


def test_counts_effect_and_spread_by_hand():
    result = paired([1.0, 4.0, 2.0, 5.0, 0.0], [0.0, 0.0, 2.0, 7.0, 0.0])
    # differences 1, 4, 0, -2, 0: ranks 1, 3, 2; in favour 4, against 2, of 6
    assert (result.n, result.positive, result.negative, result.zero) == (5, 2, 1, 2)
    assert result.effect == pytest.approx((4 - 2) / 6)
    assert result.mean == pytest.approx(0.6)
    assert result.sd == pytest.approx(np.std([1, 4, 0, -2, 0], ddof=1))


def test_25_pairs_all_one_way_reach_the_least_p():
    """The paper's p < 1e-6 at n = 25 is attainable: the least two-sided p is 2 / 2^25."""
    d = np.arange(1.0, 26.0)
    assert paired(d, np.zeros(25)).p == pytest.approx(2 / 2**25)


def test_no_difference_at_all_is_no_evidence():
    result = paired([0.5, 0.7], [0.5, 0.7])
    assert (result.p, result.effect, result.zero) == (1.0, 0.0, 2)


@settings(deadline=None, max_examples=30)
@given(st.tuples(ROW, ROW))
def test_swapping_the_sides_turns_the_sign_and_keeps_p(pair):
    a, b = pair
    here, there = paired(a, b), paired(b, a)
    assert here.p == pytest.approx(there.p)
    assert 0 <= here.p <= 1
    assert here.effect == pytest.approx(-there.effect)
    assert (here.positive, here.negative) == (there.negative, there.positive)


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], []), ([[1.0]], [[2.0]])])
def test_unequal_rows_are_refused(a, b):
    with pytest.raises(ValueError, match="two equal rows"):
        paired(a, b)


def test_a_pair_that_is_not_finite_is_named():
    with pytest.raises(ValueError, match="pair 1 "):
        paired([0.0, np.nan], [0.0, 1.0])


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4 3 2 1 = .04 .06 .06 .04, never falling
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_the_raw_and_bonferronis(p):
    adjusted = holm(p)
    for raw, value in zip(p, adjusted, strict=True):
        assert raw <= value <= min(1.0, len(p) * raw) + 1e-12
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)
