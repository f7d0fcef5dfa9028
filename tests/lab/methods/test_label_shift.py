from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.label_shift import LOG_ZERO, reweighted
from ploc_lab.methods.protocol import batches

NAMES = ["em", "bbse_hard", "bbse_soft", "rlls"]


def gaussians(n, rate, seed, bias=0.0):
    """Classes N(-1, 1) and N(1, 1): the logit is 2x under equal rates, and `bias` more under others."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return 2 * rng.normal(2 * y - 1, 1) + bias, y


@cache
def source(rate=0.3, n=4000):
    z, y = gaussians(n, rate, seed=1, bias=np.log(rate / (1 - rate)))
    return SourceInfo(np.array([1 - rate, rate]), Validation(np.zeros((n, 1), np.float32), y, z))


def test_posteriors_are_reweighed_by_hand():
    z = np.log([0.25 / 0.75, 0.5 / 0.5])
    rows = np.stack([np.zeros(2), z], axis=1)
    answer = reweighted(rows, np.array([[1.0, 3.0], [2.0, 1.0]]), z)
    np.testing.assert_allclose(answer.probs, [0.5, 1 / 3], rtol=1e-14)


def test_a_class_of_weight_zero_ties_all_rows_and_stays_finite():
    z = np.array([-3.0, 0.5, 900.0])
    answer = reweighted(np.stack([np.zeros(3), z], 1), np.array([[0.0, 1.0]] * 3), z)
    assert np.array_equal(answer.probs, [1, 1, 1])
    assert np.array_equal(answer.scores, [-LOG_ZERO] * 3)


@pytest.mark.parametrize("name", NAMES)
def test_all_recover_a_known_shift(name):
    """A source with 30 % positives, a target with 70 %: weights (.3/.7, .7/.3)."""
    z, _ = gaussians(20_000, 0.7, seed=2, bias=np.log(3 / 7))
    for method in (build(name, None, source()), build(f"{name}_prequential", None, source())):
        answer = method.replay(z, batch=len(z))
        shift = (answer.scores - z)[-1]  # the prequential weights, too, have seen nearly all by then
        assert shift == pytest.approx(2 * np.log(7 / 3), abs=0.12)


@pytest.mark.parametrize("name", [f"{name}_prequential" for name in NAMES])
@settings(max_examples=8, deadline=None)
@given(size=st.integers(1, 130), other=st.integers(1, 130))
def test_the_past_does_not_know_how_the_stream_is_cut(name, size, other):
    z, _ = gaussians(130, 0.6, seed=3)
    stepped = build(name, None, source())
    parts = [stepped.answer(z[part], None).scores for part in batches(len(z), size)]
    assert np.array_equal(np.concatenate(parts), build(name, None, source()).replay(z, batch=other).scores)


@pytest.mark.parametrize("name", [f"{name}_prequential" for name in NAMES])
@pytest.mark.parametrize("t", [0, 5, 40, 99])
def test_no_row_is_answered_with_what_comes_with_it_or_after(name, t):
    z, _ = gaussians(100, 0.6, seed=4)
    changed = z.copy()
    changed[t:] = -5.0
    first, second = (
        build(name, None, source(), warmup=3).replay(rows).scores - rows for rows in (z, changed)
    )
    np.testing.assert_allclose(first[: t + 1], second[: t + 1], rtol=0, atol=1e-12)


def test_before_the_warm_up_the_source_answers_and_refits_follow_the_growth():
    z, _ = gaussians(200, 0.9, seed=5)
    method = build("em_prequential", None, source(), warmup=20, growth=0.5)
    moved = method.replay(z).scores - z
    assert np.all(moved[:20] == 0)
    changes = 1 + np.flatnonzero(np.abs(np.diff(moved)) > 1e-12)
    assert changes.tolist() == [20, 30, 45, 68, 102, 153]
    assert method.steps == 6


@pytest.mark.parametrize("options", [{"growth": -0.1}, {"warmup": 0}])
def test_schedules_that_never_are_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        build("em_prequential", None, source(), **options)
