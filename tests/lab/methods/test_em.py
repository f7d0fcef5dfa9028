import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.em import maximise
from ploc_lab.methods.protocol import batches


def oracle(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the oracles' own imports are deprecated
        return pytest.importorskip(module)


def softmax(rows):
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sample(classes, n=800, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, classes)) * 1.5
    y = (rng.random(n)[:, None] > softmax(0.7 * rows).cumsum(axis=1)).sum(axis=1)
    prior = np.bincount(y, minlength=classes) / n
    return SourceInfo(prior, Validation(np.zeros((n, 1), np.float32), y, rows))


def target(classes, n=400, seed=9):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, classes)) * 1.5 + np.linspace(-1, 1, classes)


def em(p, prior, start=None):
    """The authors' loop on one batch, one step after another."""
    rates = np.array(prior if start is None else start)
    for _ in range(100):
        q = p * rates / prior
        q /= q.sum(axis=1, keepdims=True)
        new = q.mean(axis=0)
        still = np.all(np.abs(new - rates) <= 1e-6)
        rates = new
        if still:
            break
    return rates


@pytest.mark.parametrize("classes", [2, 3])
def test_quapy_finds_the_same_rates(classes):
    emq = oracle("quapy.method.aggregative").EMQ
    source, rows = sample(classes), target(classes)
    prior = softmax(source.validation.logits).mean(axis=0)
    theirs, posteriors = emq.EM(prior, softmax(rows), epsilon=1e-9)
    answer = build("em", None, source).replay(rows, batch=len(rows))
    ours = maximise(softmax(rows).T[:, None, :], prior)[0]
    np.testing.assert_allclose(ours, theirs, atol=2e-4)
    np.testing.assert_allclose(answer.probs, posteriors, atol=2e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_authors_code_gives_the_same_answers(classes):
    theirs = oracle("abstention.label_shift").EMImbalanceAdapter()
    source, rows = sample(classes), target(classes)
    adapt = theirs(
        tofit_initial_posterior_probs=softmax(rows), valid_posterior_probs=softmax(source.validation.logits)
    )
    answer = build("em", None, source).replay(rows, batch=len(rows))
    np.testing.assert_allclose(answer.probs, adapt(softmax(rows)), atol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 50, 400])
def test_many_batches_at_once_are_each_batch_by_itself(size):
    source, rows = sample(3), target(3)
    prior = softmax(source.validation.logits).mean(axis=0)
    probs = build("em", None, source).replay(rows, batch=size).probs
    for part in batches(len(rows), size):
        p = softmax(rows[part])
        q = p * em(p, prior) / prior
        np.testing.assert_allclose(probs[part], q / q.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-9)


def test_one_row_drives_the_rates_to_a_vertex():
    source = sample(2)
    z = np.array([1.5, -1.5])
    one = SourceInfo(
        source.prior,
        Validation(
            np.zeros((800, 1), np.float32), source.validation.y, np.diff(source.validation.logits)[:, 0]
        ),
    )
    answer = build("em", None, one).replay(z, batch=1)
    assert answer.probs[0] > 1 - 1e-4
    assert answer.probs[1] < 1e-4


def test_the_source_itself_shows_no_shift():
    source = sample(3)
    rows = source.validation.logits
    np.testing.assert_allclose(
        build("em", None, source).replay(rows, batch=len(rows)).probs, softmax(rows), atol=1e-9
    )
    rates = build("em", None, source, rates="source")
    np.testing.assert_allclose(rates.prior, source.prior)
    with pytest.raises(ValueError, match="rates"):
        build("em", None, source, rates="guess")


def test_bcts_calibrates_the_posteriors_first():
    source, rows = sample(3), target(3)
    method = build("em_bcts", None, source)
    p = softmax(method.scaling(rows))
    prior = softmax(method.scaling(source.validation.logits)).mean(axis=0)
    np.testing.assert_allclose(prior, source.prior, atol=1e-6)  # fitted biases match the label rates
    q = p * em(p, prior) / prior
    answer = method.replay(rows, batch=len(rows))
    np.testing.assert_allclose(answer.probs, q / q.sum(axis=1, keepdims=True), atol=1e-8)


def test_the_past_gives_what_its_batch_would_give():
    source, rows = sample(3), target(3, n=600)
    method = build("em_prequential", None, source, growth=0.0, warmup=10)
    scores = method.replay(rows).scores
    for t in (10, 50, 599):
        start = np.full(3, 1 / 3)
        exact = maximise(softmax(rows[:t]).T[:, None, :], method.prior, start, tolerance=1e-12, most=100_000)[
            0
        ]
        rates = np.exp(scores[t] - rows[t]) * method.prior
        np.testing.assert_allclose(rates / rates.sum(), exact, atol=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 6), st.integers(2, 4), st.integers(0, 1000))
def test_no_step_lowers_the_likelihood(m, n, classes, seed):
    rng = np.random.default_rng(seed)
    posteriors = np.moveaxis(rng.dirichlet(np.full(classes, 0.3), size=(m, n)), -1, 0)
    prior = rng.dirichlet(np.full(classes, 5.0))

    def likelihood(rates):
        return np.log(np.einsum("kmn,mk->mn", posteriors / prior[:, None, None], rates)).sum(axis=1)

    before = likelihood(np.tile(prior, (m, 1)))
    for most in (1, 2, 5, 100):
        now = likelihood(maximise(posteriors, prior, most=most))
        assert np.all(now >= before - 1e-9)
        before = now
