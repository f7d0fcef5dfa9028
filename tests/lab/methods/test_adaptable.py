import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.protocol import batches


def softmax(rows):
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def norm(p):
    return p / p.sum(axis=1, keepdims=True)


def walked(rows, prior, size):
    """The correction batch by batch in probability space, the calibrator's temperature being 1."""
    ratio = prior.max() / prior.min()
    tau = 1.5 * ratio / (ratio - 1 + 1e-6)
    rates, out = np.full(len(prior), 1 / len(prior)), []
    for part in batches(len(rows), size):
        batch = rows[part].copy()
        p = softmax(batch)
        current = 0.9 * norm(p / prior).mean(axis=0) + 0.1 * rates
        top = np.sort(p, axis=1)
        u = 1 / (top[:, -1] - top[:, -2])
        q25, q75 = np.quantile(u, [0.25, 0.75])
        for i in range(len(batch)):
            if u[i] <= q25:
                batch[i] *= tau
            elif u[i] >= q75:
                batch[i] /= tau
        p = softmax(batch)
        p = 0.5 * p + 0.5 * norm(p * current / prior)
        rates = 0.9 * p.mean(axis=0) + 0.1 * rates
        out.append(p)
    return np.concatenate(out), rates


@pytest.mark.parametrize("size", [1, 4, 64, 700])
@pytest.mark.parametrize("prior", [[0.76, 0.24], [0.2, 0.3, 0.5]])
def test_all_batches_at_once_are_the_batches_walked(size, prior):
    prior = np.array(prior)
    rows = np.random.default_rng(0).normal(size=(700, len(prior)))
    method = build("adaptable", None, SourceInfo(prior))
    answer = method.replay(rows, batch=size)
    expected, rates = walked(rows, prior, size)
    np.testing.assert_allclose(answer.probs, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(method.rates, rates, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.floats(0.05, 0.45))
def test_a_replay_is_its_batches_one_by_one(n, size, rate):
    z = np.random.default_rng(n).normal(size=n) * 3
    source = SourceInfo(np.array([1 - rate, rate]))
    whole = build("adaptable", None, source)
    stepped = build("adaptable", None, source)
    parts = [stepped.answer(z[part], None).scores for part in batches(n, size)]
    np.testing.assert_allclose(np.concatenate(parts), whole.replay(z, batch=size).scores, rtol=0, atol=1e-12)


def test_one_row_is_always_sharpened():
    source = SourceInfo(np.array([0.76, 0.24]))
    z = np.array([0.2])
    tau = 1.5 * (0.76 / 0.24) / (0.76 / 0.24 - 1 + 1e-6)
    p = 1 / (1 + np.exp(-tau * 0.2))
    q = 1 / (1 + np.exp(-0.2)) / 0.24 / (1 / (1 + np.exp(-0.2)) / 0.24 + 1 / (1 + np.exp(0.2)) / 0.76)
    rate = 0.9 * q + 0.1 * 0.5
    shifted = p * rate / 0.24 / (p * rate / 0.24 + (1 - p) * (1 - rate) / 0.76)
    answer = build("adaptable", None, source).replay(z)
    np.testing.assert_allclose(answer.probs, [0.5 * p + 0.5 * shifted], rtol=1e-12)


def test_a_balanced_source_has_no_temperature():
    method = build("adaptable", None, SourceInfo(np.array([0.5, 0.5])))
    assert method.tau == 1.0
    assert np.isfinite(method.replay(np.array([3.0, -700.0, 700.0])).scores).all()
    assert method.report()["skipped"] == {"no temperature: the source's class rates are equal": 3}


def test_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="smoothing"):
        build("adaptable", None, SourceInfo(np.array([0.5, 0.5])), smoothing=1.0)
