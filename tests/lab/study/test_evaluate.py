import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from ploc import PLOC, links
from ploc_lab import data
from ploc_lab.data import SealedError
from ploc_lab.methods import Answer
from ploc_lab.study import evaluate


def answer(z):
    return Answer(links.sigmoid(z), z)


def test_labels_open_only_for_finished_predictions(tmp_path, monkeypatch):
    monkeypatch.setenv("PLOC_WORK", str(tmp_path))
    stream = data.load("rand_hie").stream(limit=50)
    with pytest.raises(ValueError, match="no answers"):
        evaluate.open_labels(stream, [])
    with pytest.raises(SealedError):
        evaluate.open_labels(stream, [answer(np.zeros(50)), answer(np.zeros(49))])
    assert evaluate.open_labels(stream, [answer(np.zeros(50))] * 2).shape == (50,)


def test_a_row_by_hand():
    z = np.array([2.0, -1.0, 1.0, -2.0])
    row = evaluate.measure(answer(z), np.array([1, 1, 0, 0]))
    assert row["accuracy"] == 0.5
    assert row["balanced_accuracy"] == 0.5
    assert row["f1"] == 0.5
    assert row["auroc"] == 0.75
    assert row["base_rate"] == row["positive_rate"] == 0.5
    assert row["undefined"] is None


def test_auroc_is_of_the_scores_where_the_sigmoid_has_saturated():
    z = np.array([40.0, 41.0, 42.0, 43.0])
    assert len(np.unique(links.sigmoid(z))) < 4
    assert evaluate.measure(answer(z), np.array([0, 0, 1, 1]))["auroc"] == 1


def test_what_is_undefined_is_none_with_a_reason():
    row = evaluate.measure(answer(np.array([1.0, 2.0])), np.array([1, 1]))
    assert row["auroc"] is None
    assert "auroc" in json.loads(row["undefined"])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000))
def test_the_oracle_is_where_an_optimiser_finds_the_least_nll(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(rng.normal(), 2, 50)
    y = (rng.random(50) < links.sigmoid(z + 1)).astype(int)
    if 0 < y.sum() < len(y):
        b = evaluate.oracle_shift(z, y)

        def nll(shift):
            c = z - shift
            return float(np.mean(np.logaddexp(0, c) - y * c))

        best = minimize_scalar(nll, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9})
        assert b == pytest.approx(best.x, abs=1e-3)
        assert nll(b) <= best.fun + 1e-12


def test_the_oracle_needs_both_classes():
    with pytest.raises(ValueError, match="positive rate of 1"):
        evaluate.oracle_shift(np.zeros(3), np.ones(3))


def test_propositions_on_a_random_stream():
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1.5, 400)
    y = (rng.random(400) < links.sigmoid(z + 1)).astype(int)
    row = evaluate.propositions(z, y)
    assert row["rank_changes"] == row["rank_changes_sigmoid"] == 0
    assert row["auroc_deferred"] == row["auroc_source"]
    centred = PLOC().replay(z, logits=True)
    # AUROC and I_T by their definitions, pair by pair
    s = centred[y == 1][:, None] - centred[y == 0][None, :]
    assert row["auroc_ploc"] == pytest.approx(np.mean((s > 0) + 0.5 * (s == 0)))
    mu = z - centred
    near = (
        np.abs(z[y == 1][:, None] - z[y == 0][None, :])
        <= np.abs(mu[y == 1][:, None] - mu[y == 0][None, :]) + 1e-15
    )
    assert row["drift_pairs"] == pytest.approx(near.sum(), abs=2)
    assert row["drift"] <= row["drift_bound"]
    assert row["all_pairs"] == (y == 1).sum() * (y == 0).sum()


def test_recovery_counts_rows_until_nine_tenths_of_the_way():
    n, change = 600, 300
    z = np.where(np.arange(n) < change, 0.0, 2.0)
    new = np.arange(n) >= change
    y = np.arange(n) % 2
    # an origin that walks from 0 to 2 over the 100 rows after the change
    shift = np.clip((np.arange(n) - change) / 100, 0, 1) * 2
    row = evaluate.recovery(answer(z - shift), z, y, (change,), new)
    # the mean of rows r .. r + 49 of the walk is first >= .9: steps .01, mean (r + r + 49) / 200 capped at 1
    walk = np.convolve(np.clip(np.arange(300) / 100, 0, 1), np.full(50, 1 / 50), mode="valid")
    assert row["recovery_rows"] == np.flatnonzero(walk >= 0.9)[0]
    assert row["recovered"] == 1
    # an origin that stays at 0 while the mean logit goes from m to m + 2: behind both, between, beyond both
    for m in (1.0, 0.0, -1.0, -3.0):
        never = evaluate.recovery(answer(z + m), z + m, y, (change,), new)
        assert (never["recovery_rows"], never["recovered"]) == (None, 0)


def test_a_network_that_answers_one_number_has_nothing_to_recover_from():
    z, y, new = np.full(600, -0.6), np.arange(600) % 2, np.arange(600) >= 300
    row = evaluate.recovery(answer(z), z, y, (300,), new)
    assert (row["recovery_rows"], row["recovered"]) == (None, None)


def test_recovery_judges_the_rows_after_the_change():
    z = np.concatenate([np.full(300, -1.0), np.full(300, 1.0)])
    y = np.concatenate([np.zeros(300), np.ones(300)]).astype(int)
    y[300:400] = 0
    row = evaluate.recovery(answer(z), z, y, (300,), np.arange(600) >= 300)
    assert row["after_accuracy"] == 0.5
