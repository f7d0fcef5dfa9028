import pickle
from itertools import islice

import pytest
from river import base, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing
from river.checks import yield_checks

from ploc import PLOC, links, origin
from ploc.river import PLOCClassifier

MODELS = [
    *PLOCClassifier._unit_test_params(),
    {
        "model": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "origin": origin.EMA(0.1),
        "anchor": 0.5,
    },
]
CHECKS = [(params, check) for params in MODELS for check in yield_checks(PLOCClassifier(**params))]
RECORDS = list(datasets.Phishing().take(600))
TARGET = [x for x, _ in RECORDS[300:]]


def trained(model):
    for x, y in RECORDS[:300]:
        model.learn_one(x, y)
    return model


def scaled_regression():
    return trained(preprocessing.StandardScaler() | linear_model.LogisticRegression())


def logit(model, x):
    return links.logit(model.predict_proba_one(x)[True])


@pytest.mark.parametrize(("params", "check"), CHECKS, ids=lambda value: getattr(value, "__name__", "model"))
def test_every_check_of_river(params, check):
    model = PLOCClassifier(**params)
    assert not model._unit_test_skips()
    check(model.clone())


def test_step_one_is_the_rule_on_the_models_logits():
    source = scaled_regression()
    model = PLOCClassifier(source)
    answers = [model.step_one(x)[True] for x in TARGET]
    expected = PLOC()
    assert answers[0] == source.predict_proba_one(TARGET[0])[True]
    assert answers[1:] == [expected.step(logit(source, x)) for x in TARGET][1:]
    assert model.count == 300


def test_predict_is_pure_and_predict_then_learn_is_step():
    source = scaled_regression()
    one, two = PLOCClassifier(source), PLOCClassifier(source)
    for x in TARGET[:50]:
        before = pickle.dumps(one)
        answer, label = one.predict_proba_one(x), one.predict_one(x)
        assert pickle.dumps(one) == before
        one.learn_one(x, None)
        stepped = two.step_one(x)
        assert answer == pytest.approx(stepped, abs=1e-15)
        assert label == (stepped[True] > 0.5)
    assert one._center.state() == two._center.state()


@pytest.mark.parametrize("poison", [None, True, "spam", float("nan"), -3])
def test_labels_handed_to_learn_one_move_neither_the_origin_nor_the_frozen_model(poison):
    source = scaled_regression()
    before = pickle.dumps(source)
    poisoned, clean = PLOCClassifier(source), PLOCClassifier(source)
    for x in TARGET[:50]:
        poisoned.learn_one(x, poison)
        clean.observe_one(x)
    assert poisoned._center.state() == clean._center.state()
    assert pickle.dumps(source) == before


def test_a_model_that_is_not_frozen_learns_after_its_logit_was_observed():
    alone, expected = linear_model.LogisticRegression(), PLOC()
    model = PLOCClassifier(linear_model.LogisticRegression(), frozen=False)
    for x, y in RECORDS[:100]:
        expected.observe(logit(alone, x))
        alone.learn_one(x, y)
        model.learn_one(x, y)
    assert model._center.state() == expected.state()
    assert model.model.weights == alone.weights


@pytest.mark.parametrize("delay", [None, 1, 40])
def test_progressive_validation_with_and_without_delay(delay):
    source = scaled_regression()
    stream = RECORDS[300:]
    metric = evaluate.progressive_val_score(stream, PLOCClassifier(source), metrics.Accuracy(), delay=delay)

    # By hand: record i is learnt before record t is answered where i + delay <= t; no delay is a delay of 1.
    z = [logit(source, x) for x, _ in stream]
    right = 0
    for t, (_, y) in enumerate(stream):
        seen = z[: max(t + 1 - (delay or 1), 0)]
        mean = sum(seen) / len(seen) if seen else 0.0
        right += (z[t] > mean) == y
    assert metric.get() == pytest.approx(right / len(stream), abs=1e-12)


def test_inside_a_pipeline_the_scaler_learns_and_the_source_does_not():
    source = trained(linear_model.LogisticRegression())
    weights = dict(source.weights)
    pipeline = preprocessing.StandardScaler() | PLOCClassifier(source)
    evaluate.progressive_val_score(RECORDS[300:], pipeline, metrics.ROCAUC())
    assert dict(source.weights) == weights
    assert pipeline["PLOCClassifier"].count == 300
    assert sum(pipeline["StandardScaler"].counts.values()) > 0


def test_many_classes_are_centred_one_logit_a_class():
    segments = list(datasets.ImageSegments().take(600))
    source = naive_bayes.GaussianNB()
    for x, y in segments[:400]:
        source.learn_one(x, y)
    model = PLOCClassifier(source)
    labels = sorted(source.predict_proba_one(segments[0][0]), key=str)
    expected = PLOC(len(labels))
    assert len(labels) == 7
    for t, (x, _) in enumerate(segments[400:]):
        p = source.predict_proba_one(x)
        centred = expected.step(links.from_proba([[p[label] for label in labels]])[0])
        answer = model.step_one(x)
        if t:
            assert [answer[label] for label in labels] == pytest.approx(centred.tolist(), abs=1e-12)
        assert sum(answer.values()) == pytest.approx(1.0)


def test_a_new_class_begins_a_new_origin_and_a_single_class_is_answered_as_the_model_does():
    source = naive_bayes.GaussianNB()
    model = PLOCClassifier(source, frozen=False)
    assert model.step_one({"a": 1.0}) == {}
    model.learn_one({"a": 1.0}, "x")
    assert model.step_one({"a": 1.0}) == {"x": 1.0}
    assert model.count == 0
    model.learn_one({"a": 3.0}, "y")
    model.observe_one({"a": 2.0})
    assert model.count == 1
    source.learn_one({"a": 9.0}, "z")
    assert model.predict_proba_one({"a": 2.0}) == source.predict_proba_one({"a": 2.0})
    model.observe_one({"a": 2.0})
    assert model.count == 1
    assert model._labels == ("x", "y", "z")


def test_labels_of_any_two_names_are_ordered_and_keep_their_names():
    source = naive_bayes.GaussianNB()
    for x, y in islice(RECORDS, 300):
        source.learn_one(x, "yes" if y else "no")
    model = PLOCClassifier(source, origin=origin.Mean(), anchor=1.0)
    for x in TARGET[:100]:
        model.step_one(x)
    assert model._labels == ("no", "yes")
    z = links.logit(source.predict_proba_one(TARGET[0])["yes"])
    assert model.predict_proba_one(TARGET[0])["yes"] == pytest.approx(links.sigmoid(z - model._center.shift))


def test_a_probability_that_is_no_number_is_refused_and_the_origin_is_as_before():
    class Broken(base.Classifier):
        def learn_one(self, x, y): ...

        def predict_proba_one(self, x, **kwargs):
            return {False: 1.0 - x["p"], True: x["p"]}

    model = PLOCClassifier(Broken())
    model.observe_one({"p": 0.25})
    before = model._center.state()
    for verb in (model.step_one, model.observe_one, model.learn_one, model.predict_proba_one):
        with pytest.raises(ValueError, match="probability is nan"):
            verb({"p": float("nan")})
    assert model._center.state() == before
