"""Links against their definitions in exact arithmetic, and the conversions against each other."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import links

finite = st.floats(-700, 700)


def exact_sigmoid(z: float) -> float:
    getcontext().prec = 50
    return float(1 / (1 + (-Decimal(z)).exp()))


@given(st.floats(-1000, 1000))
def test_sigmoid_is_right_to_a_few_units_in_the_last_place(z):
    expected = exact_sigmoid(z)
    assert math.isclose(links.sigmoid(z), expected, rel_tol=4e-16, abs_tol=1e-307)
    assert math.isclose(links.sigmoid(np.array([z]))[0], expected, rel_tol=4e-16, abs_tol=1e-307)


@given(st.floats(-600, 600), st.floats(0, 50))
def test_sigmoid_never_falls_as_its_argument_rises(z, step):
    assert links.sigmoid(z) <= links.sigmoid(z + step)


def test_a_float_gives_a_float_and_an_array_an_array():
    assert type(links.sigmoid(0.5)) is float
    assert type(links.sigmoid(np.float64(0.5))) is float
    assert type(links.logit(0.5)) is float
    assert links.sigmoid(np.zeros((2, 3))).shape == (2, 3)


@given(arrays(np.float64, (5, 4), elements=finite), st.floats(-300, 300))
def test_softmax_sums_to_one_and_does_not_see_a_common_constant(Z, constant):
    P = links.softmax(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(links.softmax(Z + constant), P, rtol=1e-9, atol=1e-300)


@given(arrays(np.float64, (5, 3), elements=st.floats(-30, 30)))
def test_log_softmax_is_the_logarithm_of_softmax(Z):
    np.testing.assert_allclose(links.log_softmax(Z), np.log(links.softmax(Z)), rtol=1e-9, atol=1e-12)


def test_softmax_of_two_logits_is_the_sigmoid_of_their_difference():
    Z = np.random.default_rng(0).normal(size=(100, 2)) * 5
    np.testing.assert_allclose(links.softmax(Z)[:, 1], links.sigmoid(links.relative(Z)), rtol=1e-13)


@given(st.floats(-25, 25))
def test_logit_undoes_sigmoid(z):
    assert math.isclose(links.logit(links.sigmoid(z)), z, rel_tol=1e-4, abs_tol=1e-4)


def test_the_clip_bounds_the_logit():
    bound = math.log((1 - 1e-12) / 1e-12)
    assert links.logit(0.0) == pytest.approx(-bound)
    assert links.logit(1.0) == pytest.approx(bound)
    np.testing.assert_allclose(links.logit(np.array([0.0, 1.0]), clip=0.1), [-math.log(9), math.log(9)])


def test_probabilities_of_two_columns_give_the_relative_logit():
    p = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(links.from_proba(np.stack([1 - p, p], axis=1)), links.logit(p), rtol=1e-12)
    np.testing.assert_allclose(links.from_log_proba(np.log(np.stack([1 - p, p], axis=1))), links.logit(p))


@given(arrays(np.float64, (6, 4), elements=st.floats(-20, 20)))
def test_log_probabilities_differ_from_their_logits_by_one_number_a_row(Z):
    for logs in (
        links.from_proba(links.softmax(Z), clip=1e-300),
        links.from_log_proba(links.log_softmax(Z), clip=1e-300),
    ):
        away = Z - logs
        np.testing.assert_allclose(away, away[:, :1] + np.zeros(4), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: links.logit(1.5), r"probability is 1.5; it must lie in \[0, 1\]"),
        (lambda: links.from_proba([0.2, -0.1]), r"probability of row 1 is -0.1"),
        (lambda: links.from_proba([[0.2, 0.3]]), r"probabilities of row 0 sum to 0.5, not to 1"),
        (lambda: links.from_proba([0.2, float("nan")]), r"probability of row 1 is nan"),
        (lambda: links.from_log_proba([[0.2, -3.0]]), r"at most 0, found 0.2"),
        (lambda: links.logit(0.5, clip=0.7), r"clip must lie between 0 and 0.5, got 0.7"),
        (lambda: links.relative([1.0, 2.0, 3.0]), r"two logit columns, got shape \(3,\)"),
        (lambda: links.reals(np.ma.masked), r"logit is masked"),
        (lambda: links.reals(np.ma.array([1.0, 2.0], mask=[0, 1])), r"logit of row 1 is masked"),
    ],
)
def test_refusals_name_the_value_and_the_place(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("values", "shown"), [([True], "True"), ([1 + 2j], "1"), ([1.0, None], "None"), (["a"], "a")]
)
def test_what_is_no_real_number_is_refused(values, shown):
    with pytest.raises(TypeError, match=f"must be real numbers, got .*{shown}"):
        links.reals(values)
