import warnings

import numpy as np
import pytest

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.protocol import batches


@pytest.fixture(scope="module")
def oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the oracle's own imports are deprecated
        return pytest.importorskip("abstention.label_shift")


def softmax(rows):
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sample(classes, n=900, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, classes)) * 2
    y = (rng.random(n)[:, None] > softmax(rows).cumsum(axis=1)).sum(axis=1)
    return SourceInfo(
        np.bincount(y, minlength=classes) / n, Validation(np.zeros((n, 1), np.float32), y, rows)
    )


def target(classes, n=300, seed=9):
    return np.random.default_rng(seed).normal(size=(n, classes)) * 2 + np.linspace(-0.5, 0.5, classes)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("size", [1, 20, 300])
def test_the_authors_code_gives_the_same_answers(oracle, classes, soft, size):
    source, rows = sample(classes), target(classes)
    probs = build("bbse_soft" if soft else "bbse_hard", None, source).replay(rows, batch=size).probs
    for part in list(batches(len(rows), size))[:4]:
        adapt = oracle.BBSEImbalanceAdapter(soft=soft)(
            valid_labels=np.eye(classes)[source.validation.y],
            tofit_initial_posterior_probs=softmax(rows[part]),
            valid_posterior_probs=softmax(source.validation.logits),
        )
        np.testing.assert_allclose(probs[part], adapt(softmax(rows[part])), atol=1e-9)


def test_the_confusion_matrix_inverts_by_hand():
    """Predicted (0,0,1,1,1) for true (0,0,0,1,1): C = [[.4,0],[.2,.4]]; mu = (.4,.6) gives w = (1, 1)."""
    z = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    source = SourceInfo(
        np.array([0.6, 0.4]), Validation(np.zeros((5, 1), np.float32), np.array([0, 0, 0, 1, 1]), z)
    )
    np.testing.assert_allclose(build("bbse_hard", None, source).replay(z, batch=5).scores, z, atol=1e-12)
    # mu = (.2,.8): w0 = .5, w1 = (.8 - .1) / .4 = 1.75
    moved = build("bbse_hard", None, source).replay(np.array([-1.0, 1, 1, 1, 1]), batch=5).scores
    np.testing.assert_allclose(moved[0], -1 + np.log(1.75 / 0.5))


def test_one_row_is_an_indicator_and_clipping_leaves_a_vertex():
    z = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    source = SourceInfo(
        np.array([0.6, 0.4]), Validation(np.zeros((5, 1), np.float32), np.array([0, 0, 0, 1, 1]), z)
    )
    answer = build("bbse_hard", None, source).replay(np.array([-0.1, 0.1, -2.0]), batch=1)
    assert answer.probs.tolist() == [0.0, 1.0, 0.0]
    assert answer.scores[0] == answer.scores[2]


def test_a_source_that_predicts_one_class_leaves_its_answers_and_the_reason():
    z = np.array([-3.0, -2.0, -1.0, -0.5])
    source = SourceInfo(
        np.array([0.5, 0.5]), Validation(np.zeros((4, 1), np.float32), np.array([0, 1, 0, 1]), z)
    )
    rows = np.array([-1.0, -2.0, 1.0])
    method = build("bbse_hard", None, source)
    np.testing.assert_allclose(method.replay(rows, batch=2).scores, rows, atol=1e-15)
    assert method.steps == 0
    ((reason, count),) = method.report()["skipped"].items()
    assert "singular" in reason
    assert count == 2
    assert build("bbse_soft", None, source).replay(rows, batch=2).probs.shape == (3,)
