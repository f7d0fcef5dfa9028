import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ploc_lab.study import streams


def test_ascending_is_stable():
    assert streams.ascending(np.array([1.0, 0.0, 1.0, -1.0])).tolist() == [3, 1, 0, 2]


@given(st.sampled_from(streams.KINDS), st.integers(2, 300), st.integers(4, 300), st.integers(0, 5))
def test_a_drifting_stream_is_half_of_each_domain_by_real_rows(kind, n_old, n_new, seed):
    plan = streams.drifting(kind, n_old, n_new, seed)
    again = streams.drifting(kind, n_old, n_new, seed)
    np.testing.assert_array_equal(plan.rows, again.rows)
    assert 0 <= plan.rows.min()
    assert plan.rows.max() < n_old + n_new
    new = plan.rows >= n_old
    # rows of the target are never met twice
    if kind != "gradual":
        assert new.sum() in (len(new) // 2, len(new) // 2 - 1, len(new) // 2 + 1)
        assert len(np.unique(plan.rows[new])) == new.sum()
    assert all(0 < change < len(plan.rows) for change in plan.changes)


def test_abrupt_changes_once_and_recurring_three_times():
    abrupt = streams.drifting("abrupt", 500, 500, 0)
    np.testing.assert_array_equal(abrupt.rows >= 500, np.arange(1000) >= 500)
    assert abrupt.changes == (500,)
    recurring = streams.drifting("recurring", 500, 500, 0)
    np.testing.assert_array_equal(recurring.rows >= 500, np.arange(1000) // 250 % 2 == 1)
    assert recurring.changes == (250, 500, 750)


def test_gradual_rises_from_none_to_all():
    plan = streams.drifting("gradual", 3000, 3000, 1)
    new = plan.rows >= 3000
    assert not new[:1000].any()
    assert new[3000:].all()
    assert abs(new[1000:3000].mean() - 0.5) < 0.05
    assert new[1000:1500].mean() < 0.25
    assert new[2500:3000].mean() > 0.75
    assert plan.changes == (3000,)


def test_a_limit_shrinks_the_segments_and_keeps_the_change():
    plan = streams.drifting("abrupt", 500, 500, 0, limit=100)
    np.testing.assert_array_equal(plan.rows >= 500, np.arange(100) >= 50)


def test_what_cannot_drift_is_refused():
    with pytest.raises(ValueError, match=r"'sudden'.*abrupt"):
        streams.drifting("sudden", 10, 10, 0)
    with pytest.raises(ValueError, match="at least 4 rows, got 3"):
        streams.drifting("abrupt", 10, 10, 0, limit=3)
