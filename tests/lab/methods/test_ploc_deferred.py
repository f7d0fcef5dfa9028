import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ploc import metrics
from ploc_lab.methods import SourceInfo, build

HALF = SourceInfo(np.array([0.5, 0.5]))


def test_every_row_is_centred_by_the_mean_of_all():
    z = np.array([1.0, 2.0, 6.0])
    for batch in (1, 2, 3):
        np.testing.assert_allclose(build("ploc_deferred", None, HALF).replay(z, batch=batch).scores, z - 3)


@given(arrays(float, st.integers(2, 60), elements=st.integers(-40, 40).map(float)), st.data())
def test_the_source_ranking_is_kept_exactly(z, data):
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(z), max_size=len(z))))
    y[:2] = 0, 1
    scores = build("ploc_deferred", None, HALF).replay(z).scores
    assert metrics.auroc(scores, y) == metrics.auroc(z, y)


def test_k_logits():
    z = np.random.default_rng(0).normal(size=(30, 3))
    scores = build("ploc_deferred", None, SourceInfo(np.full(3, 1 / 3))).replay(z).scores
    np.testing.assert_allclose(scores, z - z.mean(axis=0), rtol=1e-12, atol=1e-13)


def test_a_second_stream_needs_a_new_method():
    method = build("ploc_deferred", None, HALF)
    method.replay(np.zeros(3))
    with pytest.raises(ValueError, match="whole stream"):
        method.replay(np.zeros(3))
