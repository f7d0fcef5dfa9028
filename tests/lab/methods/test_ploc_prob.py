import numpy as np
import pytest

from ploc_lab.methods import SourceInfo, build

HALF = SourceInfo(np.array([0.5, 0.5]))


def test_it_is_the_papers_rule_row_by_row():
    z = np.random.default_rng(0).normal(-1, 3, 200)
    p = 1 / (1 + np.exp(-z))
    expected = [p[0]] + [np.clip(p[t] - p[:t].mean() + 0.5, 0, 1) for t in range(1, 200)]
    answer = build("ploc_prob", None, HALF).replay(z, batch=64)
    np.testing.assert_allclose(answer.probs, expected, rtol=1e-12, atol=1e-13)
    assert np.array_equal(answer.scores, answer.probs)


def test_the_clip_makes_ties_and_the_score_shows_them():
    answer = build("ploc_prob", None, HALF).replay(np.array([-9.0, 3.0, 4.0]))
    assert answer.scores[1] == answer.scores[2] == 1.0


def test_more_than_two_classes_are_refused():
    with pytest.raises(ValueError, match="ploc_k"):
        build("ploc_prob", None, SourceInfo(np.full(3, 1 / 3))).replay(np.zeros((4, 3)))
