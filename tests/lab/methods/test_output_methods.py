"""What every method that works from cached logits must do, whatever it computes."""

import copy
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.methods import OutputMethod, SourceInfo, Validation, build, names, spec
from ploc_lab.methods.protocol import batches, outputs
from ploc_lab.models.mlp import MLP

NAMES = [name for name in names() if issubclass(spec(name).cls, OutputMethod)]
TWO_CLASSES = {"ploc_prob", "prior_threshold"}
WHOLE_STREAM = {"ploc_deferred"}
D = 6


def network(classes):
    torch.manual_seed(3)
    net = MLP(D, classes, width=16).eval()
    with torch.no_grad():
        net.head.weight *= 8
    return net


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def source(net, classes):
    x = rows(400, seed=1)
    z, f = outputs(net, x, features=True)
    p = 1 / (1 + np.exp(-z)) if classes == 2 else np.exp(z) / np.exp(z).sum(1, keepdims=True)
    draw = np.random.default_rng(2).random(len(x))
    y = (draw < p).astype(int) if classes == 2 else (draw[:, None] > p.cumsum(1)).sum(1).clip(0, classes - 1)
    return SourceInfo(np.bincount(y, minlength=classes) / len(y), Validation(x, y, z, f))


NETS = {classes: network(classes) for classes in (2, 3)}
SOURCES = {classes: source(net, classes) for classes, net in NETS.items()}
CASES = [(name, k) for name in NAMES for k in (2, 3) if k == 2 or name not in TWO_CLASSES]


def fresh(name, classes):
    return build(name, NETS[classes], SOURCES[classes])


@pytest.mark.parametrize(("name", "classes"), CASES)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_responding_to_batches_is_replaying_their_logits(name, classes, size):
    x = rows(100, seed=5)
    size = len(x) if name in WHOLE_STREAM else size
    before = copy.deepcopy(NETS[classes].state_dict())
    method = fresh(name, classes)
    answers = [method.respond(x[part]) for part in batches(len(x), size)]
    logits, features = zip(
        *(outputs(NETS[classes], x[part], features=True) for part in batches(len(x), size)), strict=True
    )
    other = fresh(name, classes)
    replayed = other.replay(np.concatenate(logits), np.concatenate(features), batch=size)
    for part in (0, 1):
        stepped = np.concatenate([answer[part] for answer in answers])
        np.testing.assert_allclose(stepped, replayed[part], rtol=1e-10, atol=1e-13)
    assert method.report() == other.report()
    assert all(torch.equal(value, before[key]) for key, value in NETS[classes].state_dict().items())


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_answers_are_probabilities_and_the_report_is_json(name, classes):
    z, f = outputs(NETS[classes], rows(60, seed=6), features=True)
    method = fresh(name, classes)
    answer = method.replay(z, f, batch=8)
    assert answer.probs.shape == answer.scores.shape == z.shape
    assert np.all((answer.probs >= 0) & (answer.probs <= 1))
    if classes > 2:
        np.testing.assert_allclose(answer.probs.sum(axis=1), 1, rtol=1e-12)
        assert np.array_equal(answer.probs.argmax(axis=1), answer.scores.argmax(axis=1))
    report = json.loads(json.dumps(method.report()))
    assert report["n_adapted"] == 0
    assert report["nan"] == 0


@pytest.mark.parametrize(("name", "classes"), CASES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_no_finite_logit_gives_an_answer_that_is_not(name, classes, data):
    n = data.draw(st.integers(1, 12))
    value = st.sampled_from([0.0, 1e-9, -0.3, 0.3, 2.0, -40.0, 40.0, 900.0, -900.0])
    z = np.array(data.draw(st.lists(value, min_size=n * classes, max_size=n * classes))).reshape(n, classes)
    z = z[:, 1] if classes == 2 else z
    f = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=n * 16, max_size=n * 16)))
    method = fresh(name, classes)
    answer = method.replay(z, f.reshape(n, 16), batch=data.draw(st.integers(1, n)))
    assert np.isfinite(answer.probs).all()
    assert np.isfinite(answer.scores).all()
    assert method.nan == 0


@pytest.mark.parametrize("name", [name for name in NAMES if name != "t3a"])  # T3A reads the head's own form
@pytest.mark.parametrize("size", [1, 30])
def test_two_logits_say_what_one_relative_logit_says(name, size):
    z, f = outputs(NETS[2], rows(60, seed=7), features=True)
    sample = SOURCES[2].validation
    two = SourceInfo(
        SOURCES[2].prior,
        Validation(sample.x, sample.y, np.stack([np.zeros(len(sample.y)), sample.logits], 1)),
    )
    one = fresh(name, 2).replay(z, f, batch=size).probs
    rows2 = np.stack([np.zeros_like(z), z], axis=1)
    both = build(name, NETS[2], two).replay(rows2, f, batch=size).probs
    if name in {
        "ploc_zscore",
        "ploc_huber",
        "ploc_median",
    }:  # not linear in the logits: other answers, by design
        assert np.isfinite(both).all()
    else:
        np.testing.assert_allclose(both[:, 1], one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_refused_and_the_stream_goes_on_as_if_it_had_not_come(name):
    z, f = outputs(NETS[2], rows(20, seed=8), features=True)
    method, clean = fresh(name, 2), fresh(name, 2)
    bad = z.copy()
    bad[4] = np.nan
    with pytest.raises(ValueError, match="row 4"):
        method.replay(bad, f, batch=5)
    with pytest.raises(ValueError, match="batch size"):
        method.replay(z, f, batch=0)
    again, first = method.replay(z, f, batch=20), clean.replay(z, f, batch=20)
    assert np.array_equal(again.probs, first.probs)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_stream_is_answered_with_nothing(name):
    answer = fresh(name, 2).replay(np.empty(0), np.empty((0, 16)))
    assert answer.probs.shape == (0,)


def test_a_prior_of_other_classes_is_refused():
    for name in ("em", "adaptable", "prior_ratio", "prior_threshold"):
        method = build(name, None, SOURCES[2])
        with pytest.raises(ValueError, match="prior"):
            method.replay(np.zeros((4, 3)), batch=2)


@pytest.mark.parametrize(
    "name", ["temperature", "platt", "em", "em_bcts", "bbse_hard", "bbse_soft", "rlls", "ploc_anchor"]
)
def test_what_is_fitted_on_the_source_says_so_when_there_is_none(name):
    with pytest.raises(ValueError, match="labelled source rows"):
        build(name, None, SourceInfo(np.array([0.5, 0.5]))).replay(np.zeros(3))
