"""The rule against Algorithm 1 written out, and the laws of DESIGN section 2."""

import copy
import inspect
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import PLOC, PLOCProb, deferred, links, origin

logits = st.floats(-50, 50)
streams = st.lists(logits, min_size=1, max_size=50)
matrices = st.tuples(st.integers(1, 30), st.sampled_from([2, 3, 5, 12, 20])).flatmap(
    lambda shape: arrays(np.float64, shape, elements=logits)
)
KINDS = [
    origin.Mean(),
    origin.EMA(0.1),
    origin.Window(4),
    origin.Huber(1.0),
    origin.ZScore(),
    origin.Median(),
]


def algorithm_1(stream):
    """The paper's listing, line by line."""
    s, emitted = 0.0, []
    for t, z in enumerate(stream, 1):
        mu = s / (t - 1) if t > 1 else 0.0
        emitted.append(1 / (1 + math.exp(-(z - mu))))
        s = s + z
    return emitted


def algorithm_k(Z):
    s, emitted = np.zeros(Z.shape[1]), []
    for t, z in enumerate(Z, 1):
        centred = z - s / (t - 1) if t > 1 else z
        e = np.exp(centred - centred.max())
        emitted.append(e / e.sum())
        s = s + z
    return np.array(emitted)


@given(streams)
def test_step_is_algorithm_1(stream):
    c = PLOC()
    answers = [c.step(z) for z in stream]
    np.testing.assert_allclose(answers, algorithm_1(stream), rtol=1e-12)
    assert all(type(p) is float for p in answers)
    assert c.count == len(stream)
    assert c.shift == pytest.approx(math.fsum(stream) / len(stream), abs=1e-12)


@given(matrices)
def test_ploc_k_is_its_listing(Z):
    c = PLOC(classes=Z.shape[1])
    answers = np.array([c.step(z) for z in Z])
    np.testing.assert_allclose(answers, algorithm_k(Z), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(c.shift, Z.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(stream=streams)
def test_replay_centres_as_step_to_the_last_bit(kind, stream):
    stepped, observed, replayed, linked = (PLOC(origin=kind) for _ in range(4))
    centred = []
    for z in stream:
        centred.append(observed.predict(z, logits=True))
        observed.observe(z)
    answers = [stepped.step(z) for z in stream]
    assert replayed.replay(stream, logits=True).tolist() == centred
    np.testing.assert_allclose(linked.replay(stream), answers, rtol=1e-15, atol=1e-300)
    assert stepped.state() == observed.state() == replayed.state() == linked.state()


@given(matrices)
def test_replay_of_rows_centres_as_step_to_the_last_bit(Z):
    K = Z.shape[1]
    stepped, observed, replayed = (PLOC(classes=K) for _ in range(3))
    centred = []
    for z in Z:
        centred.append(observed.predict(z, logits=True))
        observed.observe(z)
    answers = np.array([stepped.step(z) for z in Z])
    assert replayed.replay(Z, logits=True).tolist() == np.array(centred).tolist()
    np.testing.assert_allclose(PLOC(classes=K).replay(Z), answers, rtol=1e-12, atol=1e-300)
    assert stepped.state() == observed.state() == replayed.state()


def test_long_streams_step_and_replay_alike_across_chunks_and_blocks():
    z = np.random.default_rng(0).normal(-1, 2, size=origin.BLOCK + 9_000)
    stepped, replayed = PLOC(), PLOC()
    answers = [stepped.step(value) for value in z.tolist()]
    np.testing.assert_allclose(replayed.replay(z), answers, rtol=1e-15)
    assert stepped.state() == replayed.state()
    Z = z[: 3 * 22_000].reshape(-1, 3)
    rows, replayed = PLOC(classes=3), PLOC(classes=3)
    for row in Z:
        rows.step(row)
    replayed.replay(Z)
    assert rows.state() == replayed.state()


@pytest.mark.parametrize("K", [3, 30])
def test_blocks_of_rows_close_alike(K):
    Z = np.random.default_rng(1).normal(size=(origin.BLOCK + 5, K))
    stepped, replayed, columns = PLOC(classes=K), PLOC(classes=K), origin.Columns(origin.Mean(), K)
    for row in Z:
        stepped.step(row)
    replayed.replay(Z)
    columns.trail(Z)
    assert stepped.state() == replayed.state()
    assert stepped.shift.tolist() == columns.shift.tolist()


@given(streams)
def test_two_logits_are_the_binary_form(stream):
    rng = np.random.default_rng(len(stream))
    base = rng.normal(size=len(stream))
    Z = np.stack([base, base + stream], axis=1)
    np.testing.assert_allclose(PLOC(classes=2).replay(Z)[:, 1], PLOC().replay(stream), rtol=1e-9, atol=1e-15)


@given(matrices, st.floats(-5, 5))
def test_log_probabilities_centre_as_the_logits_they_came_from(Z, constant):
    """The log-sum-exp is common to all classes, so its mean is too: the softmax does not see it."""
    K = Z.shape[1]
    expected = PLOC(classes=K).replay(Z)
    np.testing.assert_allclose(PLOC(classes=K).replay(links.log_softmax(Z)), expected, atol=1e-12)
    per_row = constant * np.arange(len(Z))[:, None]
    np.testing.assert_allclose(PLOC(classes=K).replay(Z + per_row), expected, atol=1e-12)


@given(streams, st.floats(-20, 20))
def test_a_constant_added_to_every_logit_is_gone_from_row_2_on(stream, constant):
    there = PLOC().replay(np.array(stream) + constant)
    np.testing.assert_allclose(there[1:], PLOC().replay(stream)[1:], atol=1e-9)


@given(streams, streams)
def test_no_answer_depends_on_its_own_or_later_rows(past, future):
    together = PLOC().replay(past + future)
    assert together[: len(past)].tolist() == PLOC().replay(past).tolist()


@given(streams)
def test_predict_and_state_are_pure(stream):
    c = PLOC()
    c.observe(stream)
    before = c.state()
    c.predict(1.0)
    c.predict(np.arange(5.0))
    json.dumps(c.state())
    assert c.state() == before


@given(streams)
def test_deferred_is_observe_all_then_predict_all(stream):
    probs, mu = deferred(stream)
    c = PLOC()
    c.observe(stream)
    assert probs.tolist() == c.predict(np.array(stream)).tolist()
    assert mu == c.shift == pytest.approx(math.fsum(stream) / len(stream), abs=1e-12)


def test_deferred_in_two_passes_over_chunks_is_deferred():
    z = np.random.default_rng(2).normal(size=200_001)
    c = PLOC()
    chunks = np.array_split(z, 17)
    for chunk in chunks:
        c.observe(chunk)
    answers = np.concatenate([c.predict(chunk) for chunk in chunks])
    assert answers.tolist() == deferred(z)[0].tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_ploc_prob_is_its_formula(stream):
    expected = []
    for t, p in enumerate(stream):
        mean = math.fsum(stream[:t]) / t if t else 0.5
        expected.append(min(1.0, max(0.0, p - mean + 0.5)))
    c = PLOCProb()
    answers = [c.step(p) for p in stream]
    assert all(type(p) is float for p in answers)
    np.testing.assert_allclose(answers, expected, atol=1e-12)
    np.testing.assert_allclose(PLOCProb().replay(stream), expected, atol=1e-12)
    assert answers[0] == stream[0]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(stream=streams, cut=st.integers(0, 50))
def test_a_stream_cut_anywhere_goes_on_from_its_state(kind, stream, cut):
    whole, first = PLOC(origin=kind, anchor=-0.5), PLOC(origin=kind, anchor=-0.5)
    expected = whole.replay(stream)
    head = first.replay(stream[:cut])
    second = PLOC.from_state(json.loads(json.dumps(first.state())))
    tail = second.replay(stream[cut:])
    assert head.tolist() + tail.tolist() == expected.tolist()
    assert second.state() == whole.state()


def test_copies_and_pickles_are_independent_and_equal():
    c = PLOC(classes=3, anchor=[0.0, 0.5, 0.0])
    c.observe(np.arange(12.0).reshape(4, 3))
    for other in (c.copy(), copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert other.state() == c.state()
        other.observe([9.0, 9.0, 9.0])
        assert other.count == 5
    assert c.count == 4
    c.reset()
    assert c.state() == PLOC(classes=3, anchor=[0.0, 0.5, 0.0]).state()


@given(st.lists(streams, min_size=1, max_size=5))
def test_merged_shards_have_the_mean_of_all(shards):
    merged = PLOC()
    for shard in shards:
        c = PLOC()
        c.observe(shard)
        merged.merge(c)
    everything = [z for shard in shards for z in shard]
    assert merged.count == len(everything)
    assert merged.shift == pytest.approx(math.fsum(everything) / len(everything), abs=1e-12)


def test_merge_refuses_what_differs_and_stays_as_it_was():
    c = PLOC()
    c.observe([1.0])
    for other in (PLOC(classes=2), PLOC(anchor=1.0), PLOC(origin=origin.Median()), PLOCProb()):
        with pytest.raises(ValueError, match=r"does not merge|anchors differ"):
            c.merge(other)
    with pytest.raises(ValueError, match="EMA origins depend on the order"):
        PLOC(origin=origin.EMA(0.1)).merge(PLOC(origin=origin.EMA(0.1)))
    assert c.state()["origin"]["count"] == 1


@given(streams, st.floats(-5, 5))
def test_the_anchor_is_where_centred_logits_sit(stream, anchor):
    """z - mu + anchor from row 2 on: after the stream, the logits' mean lies at the anchor."""
    c = PLOC(anchor=anchor)
    z = np.array(stream)
    first = c.step(stream[0])
    assert first == links.sigmoid(stream[0])
    c.observe(z[1:])
    assert np.mean(c.predict(z, logits=True)) == pytest.approx(anchor, abs=1e-9)
    assert c.shift == pytest.approx(z.mean() - anchor, abs=1e-9)
    replayed = PLOC(anchor=anchor).replay(z, logits=True)
    plain = PLOC().replay(z, logits=True)
    np.testing.assert_allclose(replayed[1:], plain[1:] + anchor, atol=1e-9)
    assert replayed[0] == z[0]


def test_an_anchor_a_class():
    Z = np.random.default_rng(3).normal(size=(9, 3))
    anchor = np.array([0.5, 0.0, -0.5])
    there = PLOC(classes=3, anchor=anchor).replay(Z, logits=True)
    np.testing.assert_allclose(there[1:], PLOC(classes=3).replay(Z, logits=True)[1:] + anchor, atol=1e-12)
    assert there[0].tolist() == Z[0].tolist()


def test_zscore_divides_by_the_spread_of_the_past():
    z = [1.0, 3.0, 4.0]
    c = PLOC(origin=origin.ZScore())
    assert c.replay(z, logits=True).tolist() == [1.0, 2.0, 2.0]  # (1-0)/1, (3-1)/1, (4-2)/1
    assert c.predict(5.0, logits=True) == pytest.approx((5 - 8 / 3) / np.std(z))
    anchored = PLOC(origin=origin.ZScore(), anchor=1.0)
    anchored.observe(z)
    assert anchored.predict(5.0, logits=True) == pytest.approx((5 - 8 / 3) / np.std(z) + 1.0)
    assert (5.0 - anchored.shift) / np.std(z) == pytest.approx((5 - 8 / 3) / np.std(z) + 1.0)


@pytest.mark.parametrize(
    "stream",
    [
        [1, 2, 3],
        np.array([1, 2, 3], dtype=np.int8),
        np.array([1, 2, 3], dtype=np.float32),
        np.arange(1.0, 7.0)[::2] / 2 + 0.5,
        (1, 2.0, np.float32(3)),
    ],
)
def test_real_numbers_of_any_make_are_taken(stream):
    expected = PLOC().replay([1.0, 2.0, 3.0])
    assert PLOC().replay(stream).tolist() == expected.tolist()
    c = PLOC()
    assert [c.step(z) for z in stream] == pytest.approx(expected.tolist(), rel=1e-15)
    assert c.shift == 2.0


def test_scalars_of_numpy_give_floats():
    c = PLOC()
    for z in (1, np.float64(1), np.float32(1), np.int64(1), np.array(1.0)):
        assert type(c.step(z)) is float
        assert type(c.predict(z)) is float
    c.observe(np.float64(1))
    assert type(c.shift) is float
    assert c.shift == 1.0


def test_float32_is_answered_in_float64():
    z = np.array([0.1, -0.7, 2.3], dtype=np.float32)
    for answer in (PLOC().replay(z), PLOC().predict(z), deferred(z)[0], PLOC().predict(z, logits=True)):
        assert answer.dtype == np.float64
    assert deferred(z)[0].tolist() == deferred(z.astype(np.float64))[0].tolist()
    row = PLOC(classes=3).step(z)
    np.testing.assert_allclose(row, PLOC(classes=3).step(z.astype(np.float64)), rtol=1e-15)


def test_float32_never_accumulates():
    z = np.full(100_000, 0.1, dtype=np.float32)
    c = PLOC()
    c.observe(z)
    assert c.shift == pytest.approx(float(np.float32(0.1)), abs=1e-14)


BAD = [
    (
        [0.0, 1.0, math.nan],
        ValueError,
        r"logit of row 2 is nan; it must be a finite number; the stream was not changed",
    ),
    ([0.0, math.inf], ValueError, "logit of row 1 is inf"),
    ([0.0, -math.inf, 1.0], ValueError, "logit of row 1 is -inf"),
    ([0.0, 1e300], ValueError, r"logit of row 1 is 1e\+300"),
    ([1.0, 2j], TypeError, "must be real numbers, got complex128"),
    ([1.0, None], TypeError, "must be real numbers, got object such as None"),
    (["1.0"], TypeError, "must be real numbers, got <U3 such as '1.0'"),
    ([True, False], TypeError, "must be real numbers, got bool such as True"),
    (
        np.array([1.0, 2.0], dtype=object),
        TypeError,
        r"an object array of them .*np.asarray\(values, dtype=float\)",
    ),
    ([1, 10**30], TypeError, "integers beyond 64 bits make one"),
    (np.ma.array([0.0, 1.0], mask=[False, True]), ValueError, "logit of row 1 is masked"),
    (np.ma.masked, ValueError, "logit is masked; drop or fill"),
    ([[1.0, 2.0]], ValueError, r"shape \(1, 2\) where one number a row is taken; PLOC\(classes=K\) takes K"),
]


@pytest.mark.parametrize(("stream", "error", "message"), BAD, ids=[m for *_, m in BAD])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_bad_row_anywhere_changes_nothing(kind, stream, error, message):
    c = PLOC(origin=kind)
    c.observe([0.5, -0.25])
    before = c.state()
    for verb in (c.replay, c.observe):
        with pytest.raises(error, match=message):
            verb(stream)
        assert c.state() == before


@pytest.mark.parametrize("kind", [origin.Mean(), origin.EMA(0.5)], ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_a_bad_single_logit_changes_nothing(kind, bad):
    c = PLOC(origin=kind)
    c.observe([0.5, -0.25])
    before = c.state()
    for verb in (c.step, c.observe, c.predict):
        with pytest.raises(ValueError, match=r"logit of row 2 is .*; it must be a finite number"):
            verb(bad)
    assert c.state() == before


@pytest.mark.parametrize("classes", [None, 3])
def test_a_zscore_refuses_what_its_squares_cannot_hold(classes):
    c = PLOC(classes, origin=origin.ZScore())
    shape = () if classes is None else (classes,)
    with pytest.raises(ValueError, match=r"is 1e\+200; it must be a finite number within ±1e\+140"):
        c.observe(np.full((1, *shape), 1e200))
    c.observe(np.stack([np.full(shape, 9e139), np.full(shape, -9e139)]))
    assert np.isfinite(c.step(np.ones(shape) if shape else 1.0)).all()
    assert c.copy().state() == c.state()


def test_what_a_center_is_cannot_be_changed_under_its_stream():
    c = PLOC(classes=3, anchor=[0.0, 1.0, 2.0], origin=origin.EMA(0.5))
    c.observe([[1.0, 2.0, 3.0]])
    before = c.state()
    for name in ("anchor", "classes", "origin"):
        with pytest.raises(AttributeError):
            setattr(c, name, 1)
    with pytest.raises(ValueError, match="read-only"):
        c.anchor[0] = 7.0
    c.origin.push(100.0)
    one = PLOC(origin=origin.EMA(0.5))
    one.observe([1.0, 2.0])
    one.origin.push(100.0)
    assert c.state() == before
    assert (one.count, one.shift) == (2, 1.5)


@pytest.mark.parametrize("K", [3, 40])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_bad_row_of_logits_changes_nothing(K, bad):
    c = PLOC(classes=K)
    c.observe(np.zeros((2, K)))
    before = c.state()
    row = np.zeros(K)
    row[K // 2] = bad
    for verb in (c.step, c.observe):
        with pytest.raises(
            ValueError, match=rf"logit of row ., column {K // 2}, is {bad}; it must be a finite number"
        ):
            verb(row)
        assert c.state() == before
    for wrong in (np.zeros(K + 1), np.zeros((2, K + 1)), 1.0):
        with pytest.raises(ValueError, match=f"where {K} logits a row is taken"):
            c.step(wrong)
    with pytest.raises(ValueError, match="step takes one row"):
        c.step(np.zeros((2, K)))
    assert c.state() == before


@pytest.mark.parametrize("K", [3, 40])
def test_rows_of_extreme_logits_are_answered(K):
    row = np.linspace(-2000.0, 2000.0, K)
    c = PLOC(classes=K)
    np.testing.assert_allclose(c.step(row), links.softmax(row))
    assert c.count == 1
    np.testing.assert_allclose(c.step(row), np.full(K, 1 / K))


def test_scalar_extremes_saturate_and_do_not_overflow():
    c = PLOC()
    assert c.step(-5000.0) == 0.0
    assert c.step(5000.0) == 1.0
    assert PLOC().replay([-5000.0, 5000.0]).tolist() == [0.0, 1.0]


def test_probabilities_outside_0_1_are_refused():
    c = PLOCProb()
    for verb in (c.replay, c.observe):
        with pytest.raises(
            ValueError, match=r"probability of row 1 is 1.2; it must lie in \[0, 1\]; the stream"
        ):
            verb([0.5, 1.2])
    with pytest.raises(ValueError, match=r"probability of row 0 is -0.1"):
        c.step(-0.1)
    assert c.count == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PLOC(classes=1), "whole number from 2, or None"),
        (lambda: PLOC(classes=2.0), "whole number from 2, or None"),
        (lambda: PLOC(anchor=math.nan), "anchor is nan; it must be a finite number"),
        (lambda: PLOC(anchor=[1.0, 2.0]), "one relative logit has one number"),
        (lambda: PLOC(classes=3, anchor=[1.0, 2.0]), "takes a number or 3"),
        (lambda: PLOCProb(classes=3), "classes=3 needs PLOC"),
        (lambda: PLOC().replay(1.0), "replay takes rows"),
        (
            lambda: PLOC.from_state({"format": "PLOCProb"}),
            "not the state of a PLOC: its format is 'PLOCProb'",
        ),
        (lambda: PLOC.from_state([]), r"its format is \[\]"),
        (lambda: PLOC.from_state({"format": "PLOC", "version": 2}), "version 2; this ploc reads version 1"),
        (lambda: PLOC.from_state({"format": "PLOC", "version": 1}), "origin None; it must be a mapping"),
        (lambda: deferred(1.0), r"a stream is \(T,\) relative logits or \(T, K\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


TAMPERED = [
    (origin.Mean(), None, {"count": 0}, "count 0, but sums of rows"),
    (origin.Mean(), None, {"total": 10**400}, r"state holds no Mean\(\) of 1 column"),
    (origin.Mean(), None, {"kind": []}, r"names the origin \[\]"),
    (origin.EMA(0.1), None, {"count": 0}, "count 0, but sums of rows"),
    (origin.EMA(0.1), 3, {"columns": None}, r"state holds no EMA\(0.1\) of 3 column"),
    (origin.EMA(0.1), 3, {"columns": [1, 2, 3]}, r"state holds no EMA\(0.1\) of 3 column"),
    (origin.ZScore(), None, {"squares": -5.0}, "squares -5.0; a sum of squares is at least 0"),
    (origin.Window(4), None, {"count": 0}, r"none of Window\(4\)|count 0"),
    (origin.Window(4), None, {"older": []}, r"after 9 rows, which is none of Window\(4\)"),
    (origin.Window(4), None, {"block": []}, r"after 9 rows, which is none of Window\(4\)"),
]


@pytest.mark.parametrize(("kind", "classes", "change", "message"), TAMPERED, ids=lambda v: str(v)[:30])
def test_a_state_that_no_stream_left_is_refused_when_it_is_read(kind, classes, change, message):
    c = PLOC(classes, origin=kind)
    c.observe(np.linspace(-1.0, 2.0, 9 * (classes or 1)).reshape((9, classes) if classes else 9))
    state = c.state()
    state["origin"] |= change
    with pytest.raises(ValueError, match=message):
        PLOC.from_state(state)


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert PLOC(np.int64(3)).state() == PLOC(3).state()
    assert origin.Window(np.int32(4)) == origin.Window(4)
    json.dumps(PLOC(np.int64(3), origin=origin.Window(np.int64(4))).state())


def test_origin_must_be_an_origin():
    with pytest.raises(TypeError, match=r"one of ploc.origin, such as origin.EMA\(0.01\); got 'mean'"):
        PLOC(origin="mean")


@pytest.mark.parametrize("verb", ["predict", "observe", "step", "replay", "merge", "reset", "state"])
def test_no_verb_has_a_place_for_labels(verb):
    names = set(inspect.signature(getattr(PLOC, verb)).parameters)
    assert not names & {"y", "label", "labels", "target", "targets"}
    assert names <= {"self", "z", "Z", "logits", "other"}
