import numpy as np
import pytest

from ploc import PLOC
from ploc_lab.study import simulate

LINEAR = [name for name in simulate.ORIGINS if simulate.weights(name) is not None]


@pytest.mark.parametrize("method", LINEAR)
def test_the_weights_are_the_estimates_own(method):
    """A weight is what the estimate does with a single one in a row of zeros."""
    w = simulate.weights(method)
    assert w.sum() == pytest.approx(1)
    for place in (0, 7, simulate.ROWS - 101, simulate.ROWS - 100, simulate.ROWS - 1):
        z = np.zeros(simulate.ROWS)
        z[place] = 1
        center = PLOC(origin=simulate.ORIGINS[method]())
        center.observe(z)
        assert center.shift == pytest.approx(w[place], abs=1e-12)


@pytest.mark.parametrize("method", LINEAR)
def test_the_measured_variance_is_the_promised_one(method):
    """400 repeats: the variance of a variance estimate is 2 / 399, six of its deviations are .43."""
    row = simulate.variance(method, seed=0)
    assert row["variance"] / row["variance_promised"] == pytest.approx(1, abs=0.43)
    assert row["variance_promised"] >= row["variance_least"] * (1 - 1e-12)
    assert abs(row["bias"]) < 6 * (row["variance_promised"] / simulate.REPEATS) ** 0.5


def test_the_uniform_mean_is_the_least_of_all():
    least = min(float(np.sum(simulate.weights(name) ** 2)) for name in LINEAR)
    assert least == pytest.approx(1 / simulate.ROWS)
    assert simulate.variance("ploc_median", 0)["variance_promised"] is None
