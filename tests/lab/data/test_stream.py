import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab import data, methods
from ploc_lab.data.stream import resample
from ploc_lab.methods import SourceInfo
from ploc_lab.methods.protocol import Answer, Card, Method


@pytest.fixture
def ds():
    return data.load("rand_hie")


def test_the_split_order_is_that_of_the_part(ds):
    s = ds.stream()
    assert len(s) == len(ds.part("ood_test")) == 2_148
    np.testing.assert_array_equal(s.index, np.arange(2_148))
    np.testing.assert_array_equal(s.rows(), ds.part("ood_test").rows())
    np.testing.assert_array_equal(s.rows(slice(3, 9)), ds.part("ood_test").rows(slice(3, 9)))


def test_without_a_time_column_time_is_the_raw_row(ds):
    s = ds.stream("time")
    assert ds.time is None
    assert (np.diff(ds.positions("ood_test")[s.index]) > 0).all()


@pytest.mark.parametrize("order", ["split", "time", "permuted"])
def test_every_order_shows_each_row_once_with_its_own_label(ds, order):
    s, plain = ds.stream(order, seed=3), ds.stream()
    assert s.order == order
    assert sorted(s.index) == list(range(len(s)))
    np.testing.assert_array_equal(s.rows(), plain.rows()[s.index])
    guess = np.zeros(len(s))
    np.testing.assert_array_equal(s.open(guess), plain.open(guess)[s.index])


def test_a_permutation_is_fixed_by_its_seed(ds):
    one, again, other = (ds.stream("permuted", seed=seed).index for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_limit_is_the_beginning_of_the_order(ds):
    np.testing.assert_array_equal(ds.stream("time", limit=10).index, ds.stream("time").index[:10])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"order": "random"}, "no order is called 'random'; there are: split, time, permuted"),
        ({"limit": 0}, "limit must be at least 1 row, got 0"),
        ({"positive_rate": 0.5}, "order must be 'permuted', got 'split'"),
        ({"order": "permuted", "positive_rate": 1.0}, "strictly between 0 and 1, got 1.0"),
    ],
)  # fmt: skip
def test_a_stream_that_makes_no_sense_is_refused(ds, call, words):
    with pytest.raises(ValueError, match=words):
        ds.stream(**call)


def test_labels_open_for_one_finite_prediction_a_row_and_for_nothing_less(ds):
    s = ds.stream(limit=5)
    assert s.open(np.zeros(5)).shape == (5,)
    assert s.open(np.zeros((5, 2))).dtype == np.int64
    for key in (None, 0.5, np.zeros(4), np.zeros((5, 2, 1)), ["a"] * 5, np.array([object()] * 5)):
        with pytest.raises(data.SealedError, match="expected 5 rows of numbers"):
            s.open(key)
    with pytest.raises(data.SealedError, match="row 3 is nan"):
        s.open([0, 0, 0, np.nan, 0])
    with pytest.raises(data.SealedError, match="sealed"):
        _ = s.y


def test_target_parts_have_no_labels_and_source_parts_have(ds):
    for name in ("ood_test", "ood_validation"):
        with pytest.raises(data.SealedError, match="sealed"):
            _ = ds.part(name).y
    assert ds.part("validation").y.mean() == pytest.approx(606 / 1_780)
    with pytest.raises(ValueError, match="no split is called 'test'"):
        ds.part("test")


def test_labels_do_not_travel_to_another_process_with_the_stream(ds):
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        pickle.dumps(ds.stream())


class Thief(Method):
    """A method that was handed what it must never have, and tries every door."""

    info = Card(title="thief", needs="logits", changes="nothing", at_one="steals")

    def respond(self, x):
        stream, ds = self.options["stream"], self.options["ds"]
        for attempt in (
            lambda: stream.y,
            stream.open,
            lambda: stream.open(np.zeros(len(x))),
            lambda: stream.open(np.full(len(stream), np.nan)),
            lambda: ds.part("ood_test").y,
            lambda: ds.part("ood_validation").y,
        ):
            with pytest.raises(data.SealedError):
                attempt()
        return Answer(np.full(len(x), 0.5), np.zeros(len(x)))


def test_a_method_that_asks_for_labels_gets_an_error(ds):
    s = ds.stream(limit=40)
    assert issubclass(Thief, methods.Method)
    thief = Thief(None, SourceInfo(prior=ds.prior), stream=s, ds=ds)
    probs = np.concatenate([thief.predict(s.rows(slice(i, i + 8))) for i in range(0, 40, 8)])
    truth = s.open(probs)
    held = [value for one in (s, ds, ds.part("ood_test")) for value in vars(one).values()]
    arrays = [value for value in held if isinstance(value, np.ndarray)]
    assert not any(array.shape == truth.shape and (array == truth).all() for array in arrays)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.05, 0.95), st.integers(0, 9))
def test_a_controlled_shift_draws_the_rate_without_repeats_and_as_long_as_it_can(pos, neg, rate, seed):
    y = np.array([1] * pos + [0] * neg)
    index = resample(y, rate, seed, None, replace=False)
    n = len(index)
    assert len(set(index)) == n <= min(pos / rate, neg / (1 - rate)) + 1e-6
    assert n > min(pos / rate, neg / (1 - rate)) - 1.001
    assert abs(y[index].sum() - rate * n) <= 0.5 + 1e-9
    np.testing.assert_array_equal(index, resample(y, rate, seed, None, replace=False))


def test_a_bootstrap_has_the_length_of_the_stream_and_the_rate(ds):
    s = ds.stream("permuted", seed=5, positive_rate=0.9, replace=True)
    assert len(s) == 2_148
    assert s.open(np.zeros(len(s))).sum() == round(0.9 * 2_148)
    assert len(set(s.index)) < len(s)


def test_a_controlled_shift_is_cut_to_its_limit_and_keeps_its_rate(ds):
    s = ds.stream("permuted", seed=5, positive_rate=0.25, limit=400)
    assert len(s) == 400
    assert s.open(np.zeros(400)).sum() == 100
    np.testing.assert_array_equal(s.rows(slice(0, 7)), ds.part("ood_test").rows(s.index[:7]))
