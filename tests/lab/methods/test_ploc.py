import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import metrics
from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.protocol import batches

HALF = SourceInfo(np.array([0.5, 0.5]))
STREAM = np.random.default_rng(0).normal(-1, 2, 300)
SIX = ["ploc", "ploc_ema01", "ploc_ema20", "ploc_window100", "ploc_zscore", "ploc_huber", "ploc_median"]


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def past_by_hand(name, z):
    """Shift and scale of each row, from the rows before it, straight from the definitions."""
    shifts, scales = np.zeros(len(z)), np.ones(len(z))
    ema = huber = 0.0
    for t, value in enumerate(z):
        past = z[:t]
        if t:
            shifts[t] = {
                "ploc": past.mean(),
                "ploc_ema01": ema,
                "ploc_ema20": ema,
                "ploc_window100": past[-100:].mean(),
                "ploc_zscore": past.mean(),
                "ploc_huber": huber,
                "ploc_median": np.median(past),
            }[name]
        if name == "ploc_zscore" and t > 1:
            scales[t] = max(past.std(), 1e-6)
        alpha = 0.2 if name == "ploc_ema20" else 0.01
        ema = value if t == 0 else (1 - alpha) * ema + alpha * value
        huber += np.clip(value - huber, -2.5, 2.5) / (t + 1)
    return shifts, scales


@pytest.mark.parametrize("name", SIX)
def test_each_origin_is_its_definition_over_the_strict_past(name):
    shifts, scales = past_by_hand(name, STREAM)
    answer = build(name, None, HALF).replay(STREAM)
    np.testing.assert_allclose(answer.scores, (STREAM - shifts) / scales, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(answer.probs, sigmoid(answer.scores), rtol=1e-14)


@pytest.mark.parametrize("name", [*SIX, "ploc_k", "ploc_prob"])
@given(
    z=arrays(float, st.integers(1, 40), elements=st.floats(-30, 30)),
    size=st.integers(1, 41),
    other=st.integers(1, 41),
)
def test_no_cut_of_the_stream_changes_a_bit(name, z, size, other):
    stepped = build(name, None, HALF)
    parts = [stepped.answer(z[part], None) for part in batches(len(z), size)]
    whole = build(name, None, HALF).replay(z, batch=other)
    assert np.array_equal(np.concatenate([p.probs for p in parts]), whole.probs)
    assert np.array_equal(np.concatenate([p.scores for p in parts]), whole.scores)


def test_k_logits_are_centred_coordinate_by_coordinate():
    z = np.random.default_rng(1).normal(size=(50, 4)) + np.arange(4)
    scores = build("ploc_k", None, SourceInfo(np.full(4, 0.25))).replay(z, batch=7).scores
    for t in range(1, 50):
        np.testing.assert_allclose(scores[t], z[t] - z[:t].mean(axis=0), rtol=1e-12, atol=1e-12)
    assert np.array_equal(scores[0], z[0])


def test_ploc_k_of_two_logits_is_scalar_ploc():
    scalar = build("ploc", None, HALF).replay(STREAM)
    pair = build("ploc_k", None, HALF).replay(STREAM)
    np.testing.assert_allclose(pair.scores, scalar.scores, rtol=0, atol=1e-13)


def test_batchwise_centring_is_offered_and_is_another_method_for_every_size():
    z = np.array([1.0, 3.0, -2.0, 4.0, 0.0])
    scores = build("ploc_batch", None, HALF).replay(z, batch=2).scores
    np.testing.assert_allclose(scores, [1, 3, -2 - 2, 4 - 2, 0 - 1.5])
    assert np.array_equal(
        build("ploc_batch", None, HALF).replay(z, batch=1).scores, build("ploc", None, HALF).replay(z).scores
    )


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_anchor_is_the_source_logits_mean(shape):
    rng = np.random.default_rng(4)
    z, logits = rng.normal(size=(80, *shape)), rng.normal(2, 1, size=(50, *shape))
    prior = np.array([0.5, 0.5]) if shape == () else np.full(3, 1 / 3)
    sample = Validation(np.zeros((50, 1), np.float32), np.zeros(50, int), logits)
    scores = build("ploc_anchor", None, SourceInfo(prior, sample)).replay(z).scores
    plain = build("ploc", None, SourceInfo(prior)).replay(z).scores
    np.testing.assert_allclose(scores[1:] - plain[1:], np.broadcast_to(logits.mean(0), scores[1:].shape))
    assert np.array_equal(scores[0], z[0])


def test_a_saturated_sigmoid_costs_no_rank():
    z = np.array([40.0, 50.0, 60.0, 45.0])
    y = np.array([0, 0, 1, 1])
    answer = build("ploc", None, HALF).replay(z + 1000)
    assert len(np.unique(answer.scores)) == 4
    assert metrics.auroc(build("ploc_deferred", None, HALF).replay(z).scores, y) == metrics.auroc(z, y)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"origin": "mode"}, "'mode'"),
        ({"by": "month"}, "'month'"),
        ({"anchor": "target"}, "'target'"),
        ({"origin": "ema", "alpha": 0.0}, "alpha"),
    ],
)
def test_an_option_that_is_none_is_named(options, says):
    with pytest.raises(ValueError, match=says):
        build("ploc", None, HALF, **options)


def test_what_is_carried_is_counted():
    kept = {
        "ploc": 1,
        "ploc_k": 2,
        "ploc_zscore": 2,
        "ploc_window100": 100,
        "ploc_median": 300,
        "ploc_huber": 1,
    }
    for name, size in kept.items():
        method = build(name, None, HALF)
        method.replay(STREAM)
        assert method.state_size == size, name
        assert method.report()["steps"] == 300
