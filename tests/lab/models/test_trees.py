import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ploc_lab.models.trees import ENSEMBLES, HistGradientBoosting


@pytest.fixture
def table():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(600, 6)).astype(np.float32)
    x[:, 5] = rng.integers(0, 2, 600)  # a one-hot column, as the encoder makes them
    y = (x[:, 0] * x[:, 1] + x[:, 5] + rng.normal(size=600) > 0.5).astype(np.int64)
    return x, y


def test_the_node_table_gives_scikit_learns_margins_to_the_bit(table):
    x, y = table
    fitted = HistGradientBoostingClassifier(max_iter=30, random_state=0, early_stopping=False).fit(x, y)
    new = np.random.default_rng(1).normal(size=(400, 6)).astype(np.float32)
    new[0] = x[0]  # thresholds lie between training values, so also a row that was seen
    np.testing.assert_array_equal(HistGradientBoosting.of(fitted).margins(new), fitted.decision_function(new))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_stored_ensemble_answers_as_before(table, name):
    x, y = table
    trees = ENSEMBLES[name].fit(x, y, seed=3)
    content = trees.dump()
    again = ENSEMBLES[name].load(content)
    np.testing.assert_array_equal(again.margins(x), trees.margins(x))
    assert ENSEMBLES[name].fit(x, y, seed=3).dump() == content
    assert ENSEMBLES[name].fit(x, y, seed=4).dump() != content


@pytest.mark.parametrize("name", ENSEMBLES)
def test_margins_are_relative_logits(table, name):
    x, y = table
    margins = ENSEMBLES[name].fit(x, y, seed=0).margins(x)
    assert ((margins > 0) == y).mean() > 0.9
    # Boosting the logistic loss from the base rate keeps the mean probability there.
    assert 1 / (1 + np.exp(-margins)) @ np.ones(len(y)) / len(y) == pytest.approx(y.mean(), abs=0.01)


def test_missing_values_are_refused_by_row(table):
    x, y = table
    trees = HistGradientBoosting.fit(x, y, seed=0)
    x[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17 has a missing value"):
        trees.margins(x)
