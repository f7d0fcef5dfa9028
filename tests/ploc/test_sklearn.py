import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBClassifier

from ploc import PLOC, deferred, links, origin
from ploc.sklearn import PLOCClassifier

rng = np.random.default_rng(7)
SOURCE = rng.normal(size=(300, 4))
BINARY = (SOURCE[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
THREE = np.digitize(SOURCE[:, 0], [-0.5, 0.5])
TARGET = rng.normal(size=(120, 4)) + np.array([1.5, 0.0, 0.0, 0.0])
CHECKED = [
    LogisticRegression(),
    GaussianNB(),
    LinearSVC(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    HistGradientBoostingClassifier(max_iter=5),
    RandomForestClassifier(5, random_state=0),
]


@parametrize_with_checks([PLOCClassifier(source) for source in CHECKED])
def test_every_check_of_scikit_learn(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # its own test below: it asks for an environment variable set before scipy is imported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the checks provoke in the wrapped estimators
        check(estimator)


def test_every_check_of_scikit_learn_none_skipped_none_expected_to_fail():
    script = (
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from ploc.sklearn import PLOCClassifier\n"
        "results = check_estimator(PLOCClassifier(LogisticRegression()), on_skip=None)\n"
        "print(len(results), *{result['status'] for result in results})\n"
    )
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    number, *statuses = done.stdout.split()
    assert int(number) > 50
    assert statuses == ["passed"]


@pytest.mark.parametrize("y", [BINARY, THREE])
def test_replay_is_the_rule_on_the_sources_logits(y):
    source = LogisticRegression().fit(SOURCE, y)
    z = source.decision_function(TARGET)
    expected = PLOC(None if z.ndim == 1 else 3).replay(z)
    got = PLOCClassifier(source).replay(TARGET)
    np.testing.assert_array_equal(got[:, 1] if z.ndim == 1 else got, expected)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def first_column(source, X):  # a matrix product's last bits depend on how many rows it has; a column's do not
    return X[:, 0]


def test_replay_does_not_depend_on_the_cut_and_its_first_row_is_the_sources():
    source = LogisticRegression().fit(SOURCE, BINARY)
    whole, cut = (PLOCClassifier(source, response_method=first_column) for _ in range(2))
    answers = whole.replay(TARGET)
    np.testing.assert_array_equal(
        answers, np.vstack([cut.replay(part) for part in np.array_split(TARGET, [1, 2, 50])])
    )
    np.testing.assert_allclose(
        PLOCClassifier(source).replay(TARGET[:1]), source.predict_proba(TARGET[:1]), rtol=1e-12
    )
    assert whole.center_.state() == cut.center_.state()


def test_partial_fit_then_predict_is_deferred_ploc_and_predictions_are_pure():
    source = LogisticRegression().fit(SOURCE, BINARY)
    model = PLOCClassifier(source).partial_fit(TARGET[:70]).partial_fit(TARGET[70:])
    expected, mu = deferred(source.decision_function(TARGET))
    before = pickle.dumps(model)
    np.testing.assert_array_equal(model.predict_proba(TARGET)[:, 1], expected)
    np.testing.assert_array_equal(model.predict(TARGET), source.decision_function(TARGET) > mu)
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(TARGET)), model.predict_proba(TARGET), rtol=1e-12
    )
    np.testing.assert_array_equal(model.decision_function(TARGET), source.decision_function(TARGET) - mu)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "poison", [1 - BINARY[:120], np.full(120, np.nan), ["spam"] * 120, np.zeros(3), object()]
)
def test_labels_handed_to_partial_fit_move_nothing(poison):
    source = LogisticRegression().fit(SOURCE, BINARY)
    clean, poisoned = PLOCClassifier(source).partial_fit(TARGET), PLOCClassifier(source)
    poisoned.partial_fit(TARGET, poison)
    assert poisoned.center_.state() == clean.center_.state()
    assert pickle.dumps(poisoned.estimator) == pickle.dumps(source)


def test_a_fitted_estimator_is_taken_as_it_is_and_an_unfitted_one_is_cloned():
    source = LogisticRegression().fit(SOURCE, BINARY)
    assert PLOCClassifier(source).fit(TARGET, 1 - BINARY[:120]).estimator_ is source
    frozen = FrozenEstimator(source)
    assert clone(PLOCClassifier(frozen)).fit(TARGET).estimator_ is frozen
    unfitted = LogisticRegression()
    model = PLOCClassifier(unfitted).fit(SOURCE, BINARY)
    assert model.estimator_ is not unfitted
    np.testing.assert_array_equal(model.estimator_.coef_, source.coef_)


def test_fit_empties_the_origin_and_clone_forgets_it():
    model = PLOCClassifier(LogisticRegression(), origin=origin.EMA(0.1)).fit(SOURCE, BINARY)
    model.partial_fit(TARGET)
    assert model.center_.count == 120
    copied = clone(model)
    assert not hasattr(copied, "center_")
    assert copied.origin == origin.EMA(0.1)
    assert model.fit(SOURCE, BINARY).center_.count == 0


def test_an_unfitted_source_takes_labels_only_where_classes_say_that_they_are_the_sources():
    with pytest.raises(NotFittedError):
        PLOCClassifier(LogisticRegression()).partial_fit(TARGET, BINARY[:120])
    with pytest.raises(ValueError, match=r"classes=\[0, 1, 2\], but y has \[0, 1\]"):
        PLOCClassifier(LogisticRegression()).partial_fit(SOURCE, BINARY, classes=[0, 1, 2])
    model = PLOCClassifier(LogisticRegression()).partial_fit(SOURCE, BINARY, classes=[0, 1])
    assert model.center_.count == 0
    with pytest.raises(ValueError, match=r"classes=\[0, 7\], but the source knows \[0, 1\]"):
        model.partial_fit(TARGET, None, classes=[0, 7])
    assert model.partial_fit(TARGET, None, classes=[1, 0]).center_.count == 120


def margins(name, source, X):
    return {
        "decision_function": lambda: source.decision_function(X),
        "raw_score": lambda: source.predict_proba(X, raw_score=True),
        "output_margin": lambda: source.predict(X, output_margin=True),
        "RawFormulaVal": lambda: source.predict(X, prediction_type="RawFormulaVal"),
    }[name]()


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["binary", "three"])
@pytest.mark.parametrize(
    ("source", "name"),
    [
        (HistGradientBoostingClassifier(max_iter=8), "decision_function"),
        (LGBMClassifier(n_estimators=8, n_jobs=1, verbosity=-1), "raw_score"),
        (XGBClassifier(n_estimators=8, n_jobs=1), "output_margin"),
        (
            CatBoostClassifier(iterations=8, verbose=0, thread_count=1, allow_writing_files=False),
            "RawFormulaVal",
        ),
    ],
    ids=["HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # LightGBM names its columns itself
def test_tree_ensembles_are_centred_by_their_raw_margins(source, name, y):
    source = clone(source).fit(SOURCE, y)
    model = PLOCClassifier(source, response_method=name)
    # The margin is the logit: before any row is observed PLOC says what the source says.
    np.testing.assert_allclose(model.predict_proba(TARGET), source.predict_proba(TARGET), atol=2e-7)
    z = np.asarray(margins(name, source, TARGET), dtype=np.float64)
    got = model.replay(TARGET)
    np.testing.assert_array_equal(
        got[:, 1] if z.ndim == 1 else got, PLOC(None if z.ndim == 1 else 3).replay(z)
    )
    # By probabilities instead, the same to the precision that float32 probabilities leave.
    again = PLOCClassifier(source, response_method="predict_proba").replay(TARGET)
    np.testing.assert_allclose(again, got, atol=1e-5)


def two_logits(source, X):
    z = source.decision_function(X)
    return np.column_stack((-z / 2, z / 2))


def test_response_methods_agree_where_they_say_the_same():
    source = LogisticRegression().fit(SOURCE, BINARY)
    names = ["auto", "decision_function", "predict_proba", "predict_log_proba", two_logits]
    first, *others = [PLOCClassifier(source, response_method=name).replay(TARGET) for name in names]
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-9)
    with pytest.raises(ValueError, match="response_method is 'margin'; known are auto, decision_function"):
        PLOCClassifier(source, response_method="margin").predict(TARGET)
    with pytest.raises(AttributeError, match="decision_function"):
        PLOCClassifier(GaussianNB().fit(SOURCE, BINARY), response_method="decision_function").predict(TARGET)


def test_auto_asks_the_decision_function_first_and_log_probabilities_last():
    class Spy(BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self): ...

        def __sklearn_is_fitted__(self):
            return True

        def predict_log_proba(self, X):
            return np.log(np.full((len(X), 2), 0.5))

    class Probabilistic(Spy):
        def predict_proba(self, X):
            return np.tile([0.25, 0.75], (len(X), 1))

    class Marginal(Probabilistic):
        def decision_function(self, X):
            return np.full(len(X), 2.0)

    for source, z in ((Spy(), 0.0), (Probabilistic(), np.log(3.0)), (Marginal(), 2.0)):
        assert PLOCClassifier(source).decision_function(TARGET)[0] == pytest.approx(z)


def test_dataframes_keep_their_names_and_string_classes_come_back():
    frame = pd.DataFrame(SOURCE, columns=list("abcd"))
    model = PLOCClassifier(LogisticRegression()).fit(frame, np.where(BINARY, "yes", "no"))
    target = pd.DataFrame(TARGET, columns=list("abcd"))
    model.partial_fit(target)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    assert set(model.predict(target)) == {"no", "yes"}
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(target.rename(columns={"a": "z"}))
    assert model.center_.count == 120


def test_pipelines_grid_search_and_cross_validation():
    pipe = make_pipeline(StandardScaler(), PLOCClassifier(LogisticRegression()))
    search = GridSearchCV(pipe, {"plocclassifier__estimator__C": [0.01, 1.0]}, cv=3, scoring="neg_log_loss")
    assert search.fit(SOURCE, BINARY).best_params_ == {"plocclassifier__estimator__C": 1.0}
    assert cross_val_score(pipe, SOURCE, BINARY, cv=3).mean() > 0.8
    inner = PLOCClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(SOURCE, BINARY)
    scaled, last = pipe.fit(SOURCE, BINARY)[:-1].transform(TARGET), pipe[-1]
    np.testing.assert_array_equal(inner.replay(TARGET), last.replay(scaled))


def test_metadata_is_routed_to_the_source_and_refused_without_routing():
    weights = np.where(BINARY, 10.0, 1.0)
    with pytest.raises(ValueError, match=r"sample_weight.*enable_metadata_routing"):
        PLOCClassifier(LogisticRegression()).fit(SOURCE, BINARY, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = LogisticRegression().set_fit_request(sample_weight=True)
        model = PLOCClassifier(asked).fit(SOURCE, BINARY, sample_weight=weights)
    expected = LogisticRegression().fit(SOURCE, BINARY, sample_weight=weights)
    np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)


def test_a_bad_logit_is_refused_and_the_origin_is_as_before():
    def broken(source, X):
        z = source.decision_function(X)
        z[3] = np.nan
        return z

    source = LogisticRegression().fit(SOURCE, BINARY)
    model = PLOCClassifier(source).partial_fit(TARGET)
    before = model.center_.state()
    model.response_method = broken
    for verb in (model.partial_fit, model.replay, model.predict_proba):
        with pytest.raises(ValueError, match="row 3 is nan"):
            verb(TARGET)
    assert model.center_.state() == before


def test_sources_without_two_classes_or_with_two_outputs_are_refused():
    alone = HistGradientBoostingClassifier(max_iter=2)
    with pytest.raises(ValueError, match="class"):
        PLOCClassifier(alone).fit(SOURCE, np.ones(300))
    several = RandomForestClassifier(2, random_state=0).fit(SOURCE, np.column_stack((BINARY, THREE)))
    with pytest.raises(ValueError, match="2 outputs"):
        PLOCClassifier(several).predict(TARGET)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda svc: svc,
        FrozenEstimator,
        lambda svc: make_pipeline(StandardScaler(), svc),
        lambda svc: GridSearchCV(svc, {"C": [1.0]}, cv=2),
    ],
)
def test_votes_of_pairs_are_not_taken_for_logits_of_classes(wrap):
    # With three classes there are three pairs, too.
    model = PLOCClassifier(wrap(SVC(decision_function_shape="ovo").fit(SOURCE, THREE)).fit(SOURCE, THREE))
    with pytest.raises(ValueError, match=r"a number for each pair of classes.*'ovr'"):
        model.replay(TARGET)
    assert not hasattr(model, "center_")
    one_a_class = SVC(decision_function_shape="ovr").fit(SOURCE, THREE)
    np.testing.assert_array_equal(PLOCClassifier(one_a_class).predict(TARGET), one_a_class.predict(TARGET))


@pytest.mark.parametrize("source", [Ridge(), StandardScaler()])
def test_what_is_no_classifier_is_refused(source):
    source = source.fit(SOURCE, BINARY)
    for ask in (PLOCClassifier(source).predict, PLOCClassifier(source).replay, PLOCClassifier(source).fit):
        with pytest.raises(TypeError, match=f"{type(source).__name__} is no classifier"):
            ask(TARGET)


def test_saturated_probabilities_are_clipped_not_infinite():
    forest = RandomForestClassifier(5, random_state=0).fit(SOURCE, BINARY)
    assert {0.0, 1.0} <= set(forest.predict_proba(TARGET)[:, 1])
    got = PLOCClassifier(forest).replay(TARGET)
    z = links.from_proba(forest.predict_proba(TARGET))
    np.testing.assert_array_equal(got[:, 1], PLOC().replay(z))


def test_a_source_with_a_partial_fit_of_its_own_stays_frozen():
    source = SGDClassifier(loss="log_loss", random_state=0).fit(SOURCE, BINARY)
    before = source.coef_.copy()
    PLOCClassifier(source).partial_fit(TARGET, BINARY[:120], classes=[0, 1])
    np.testing.assert_array_equal(source.coef_, before)
