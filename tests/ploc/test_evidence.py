import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import links, metrics
from ploc.evidence import NAMES, Contrast, _block_weights, _Sums, weigh

rng = np.random.default_rng(0)


@given(
    z=arrays(np.float64, 30, elements=st.floats(-8, 8).map(lambda v: round(v, 1))),
    weights=arrays(np.int64, 30, elements=st.integers(0, 4)),
)
@settings(max_examples=60, deadline=None)
def test_weighted_metrics_are_those_of_the_rows_written_out(z, weights):
    y = np.arange(30) % 2
    rows = np.repeat(np.arange(30), weights)
    if len(set(y[rows])) < 2:
        return
    sums = _Sums(links.sigmoid(z), z, y)
    got = sums.metrics(weights.astype(float) @ sums.columns, weights.astype(float))
    expected = metrics.evaluate(links.sigmoid(z[rows]), y[rows], z[rows]).asdict()
    assert got == pytest.approx([expected[name] for name in NAMES], abs=1e-12)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 9))
def test_a_resampled_stream_has_as_many_rows_and_whole_blocks(rows, block, seed):
    block = min(block, rows)
    weights = _block_weights(np.random.default_rng(seed), rows, block)
    assert weights.sum() == rows
    assert (weights >= 0).all()
    assert (weights == weights.astype(int)).all()
    if block == rows:
        assert (weights == 1).all()


def test_the_interval_of_an_accuracy_is_as_wide_as_theory_says():
    n = 4000
    y = rng.integers(0, 2, n)
    hit = rng.random(n) < 0.7
    z = np.where(hit == (y == 1), 1.0, -1.0)
    low, high = weigh(z, z, y).metrics["accuracy"].interval("before")
    assert (high - low) / 2 == pytest.approx(1.96 * (0.7 * 0.3 / n) ** 0.5, rel=0.15)


def test_coverage_of_a_change_that_is_known():
    """Answers that are right with chance .60 and .65, independently: 90 % intervals hold .05 in 90 %."""
    held = 0
    for seed in range(100):
        own = np.random.default_rng(seed)
        y = own.integers(0, 2, 300)
        z = [np.where((own.random(300) < right) == (y == 1), 1.0, -1.0) for right in (0.6, 0.65)]
        low, high = weigh(*z, y, replicates=200, seed=seed).metrics["accuracy"].interval("change", 0.9)
        held += low <= 0.05 <= high
    assert 80 <= held <= 98


def test_rows_that_repeat_their_neighbours_do_not_count_as_many():
    y = np.repeat(rng.integers(0, 2, 300), 10)
    z = np.repeat(rng.normal(size=300), 10)

    def width(evidence):
        low, high = evidence.metrics["accuracy"].interval("before")
        return high - low

    shuffled = rng.permutation(3000)
    assert width(weigh(z, z, y)) > 1.7 * width(weigh(z[shuffled], z[shuffled], y[shuffled]))


def test_a_miscentred_source_is_helped_and_a_centred_one_hurt():
    true = rng.normal(size=3000)
    y = (rng.random(3000) < links.sigmoid(2 * true)).astype(int)
    assert weigh(2 * true - 2, 2 * true, y).verdict.word == "helps"
    hurts = weigh(2 * true, 2 * true - 2, y).verdict
    assert hurts.word == "hurts"
    assert "accuracy falls" in hurts.why
    assert "NLL rises" in hurts.why
    same = weigh(2 * true, 2 * true, y)
    assert same.verdict.word == "no evidence"
    assert same.metrics["auroc"].change == 0
    assert same.metrics["auroc"].interval("change") == (0, 0)


def test_better_at_one_and_worse_at_the_other_is_no_verdict():
    """Sure answers that are right more often, and very wrong when wrong."""
    y = rng.integers(0, 2, 2000)
    before = np.where((rng.random(2000) < 0.6) == (y == 1), 0.4, -0.4)
    after = np.where((rng.random(2000) < 0.7) == (y == 1), 9.0, -9.0)
    evidence = weigh(before, after, y)
    assert evidence.metrics["accuracy"].better() == 1
    assert evidence.metrics["nll"].better() == -1
    assert evidence.verdict.word == "no evidence"
    assert ", but " in evidence.verdict.why


def test_groups_have_the_accuracy_of_their_rows():
    z = rng.normal(size=600)
    y = (rng.random(600) < 0.5).astype(int)
    groups = ["a" if i % 3 else "b" for i in range(600)]
    found = weigh(z, z + 0.5, y, groups).groups
    for name in "ab":
        mask = np.array(groups) == name
        assert found[name].before == ((z >= 0) == y)[mask].mean()
        assert found[name].after == ((z + 0.5 >= 0) == y)[mask].mean()
        low, high = found[name].interval("change")
        assert low <= found[name].change <= high


def test_the_same_seed_says_the_same():
    z, y = rng.normal(size=200), rng.integers(0, 2, 200)
    a, b = (weigh(z, z + 1, y, seed=3).metrics["ece"].interval("change") for _ in range(2))
    assert a == b
    assert a != weigh(z, z + 1, y, seed=4).metrics["ece"].interval("change")


def test_lower_is_better_for_errors():
    draws = np.array([[0.5, 0.5, 0.5], [0.1, 0.1, 0.1]])
    assert Contrast("nll", 0.5, 0.1, draws).better() == 1
    assert Contrast("accuracy", 0.5, 0.1, draws).better() == -1


def test_a_handful_of_rows_gets_no_verdict():
    y = np.arange(38) % 2
    verdict = weigh(-np.where(y, 5.0, -5.0), np.where(y, 5.0, -5.0), y).verdict
    assert verdict.word == "no evidence"
    assert "19 positive and 19 negative rows are too few" in verdict.why
