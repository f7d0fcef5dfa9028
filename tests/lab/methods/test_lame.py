import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.lame import Neighbours
from ploc_lab.methods.protocol import batches

HALF = SourceInfo(np.array([0.5, 0.5]))


def softmax(rows):
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def affinity(f, kind, k):
    """Dense, row by row, as the paper and its code define it."""
    f = f / np.linalg.norm(f, axis=1, keepdims=True)
    n, distance = len(f), cdist(f, f)
    if kind == "linear":
        return f @ f.T
    if kind == "rbf":
        sigma = np.mean([np.sort(distance[i])[min(k, n) - 1] for i in range(n)])
        return np.exp(-(distance**2) / (2 * sigma**2))
    w = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(distance[i]) if j != i][: min(k, n - 1)]
        w[i, others] = 1
    return w


def lame(rows, f, kind="knn", k=5):
    """The concave-convex loop for one batch, written out."""
    unary = -np.log(softmax(rows) + 1e-10)
    w, y, old = affinity(f, kind, k), softmax(-unary), np.inf
    for i in range(100):
        pull = w @ y
        y = softmax(-unary + pull)
        energy = np.sum(unary * y - pull * y + y * np.log(np.maximum(y, 1e-20)))
        if i > 1 and abs(energy - old) <= 1e-8 * abs(old):
            break
        old = energy
    return y


def stream(n, classes, seed=0, h=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, classes)) * 2, rng.normal(size=(n, h))


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
@pytest.mark.parametrize(("size", "classes"), [(2, 2), (5, 3), (16, 2), (50, 4)])
def test_every_batch_equals_the_loop_written_out(kind, size, classes):
    z, f = stream(50, classes)
    source = SourceInfo(np.full(classes, 1 / classes))
    probs = build("lame", None, source, affinity=kind).replay(z, f, batch=size).probs
    for part in batches(len(z), size):
        expected = lame(z[part], f[part], kind) if part.stop - part.start > 1 else softmax(z[part])
        np.testing.assert_allclose(probs[part], expected, rtol=1e-7, atol=1e-9)


def test_a_relative_logit_is_two_logits():
    z, f = stream(40, 1)
    one = build("lame", None, HALF).replay(z[:, 0], f, batch=8)
    two = lame(np.column_stack([np.zeros(8), z[:8, 0]]), f[:8])
    np.testing.assert_allclose(one.probs[:8], two[:, 1], rtol=1e-8)
    np.testing.assert_allclose(one.probs, 1 / (1 + np.exp(-one.scores)), rtol=1e-12)


@pytest.mark.parametrize("kind", ["knn", "rbf", "linear"])
def test_a_batch_of_one_is_the_identity_to_the_bit_and_says_so(kind):
    z, f = stream(9, 1)
    method = build("lame", None, HALF, affinity=kind)
    assert np.array_equal(method.replay(z[:, 0], f).scores, z[:, 0])
    assert method.report()["skipped"] == {"batch of one row": 9}
    last = build("lame", None, HALF, affinity=kind)
    assert last.replay(z[:, 0], f, batch=4).scores[8] == z[8, 0]
    assert last.report()["skipped"] == {"batch of one row": 1}
    assert last.steps == 2


def test_two_neighbours_by_hand():
    """W = [[0,1],[1,0]]: the fixed point of y_i = sigmoid(z_i + 2 y_j - 1)."""
    z, f = np.array([1.0, -0.5]), np.eye(2)
    y = 1 / (1 + np.exp(-z))
    for _ in range(2000):
        y = 1 / (1 + np.exp(-(z + 2 * y[::-1] - 1)))
    np.testing.assert_allclose(build("lame", None, HALF).replay(z, f, batch=2).probs, y, atol=1e-4)


def test_the_neighbours_of_a_big_batch_are_found_block_by_block():
    f = np.random.default_rng(1).normal(size=(3000, 3))
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    found = np.sort(Neighbours(f[None], 5).index[0], axis=1)
    distance = cdist(f, f)
    np.fill_diagonal(distance, np.inf)
    assert np.array_equal(found, np.sort(np.argsort(distance, axis=1)[:, :5], axis=1))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.sampled_from(["knn", "rbf", "linear"]), st.booleans())
def test_equal_and_zero_features_leave_numbers(n, kind, zero):
    z = np.linspace(-800, 800, n)
    answer = build("lame", None, HALF, affinity=kind).replay(
        z, np.full((n, 3), 0.0 if zero else 2.0), batch=n
    )
    assert np.isfinite(answer.scores).all()


@pytest.mark.parametrize("options", [{"affinity": "cosine"}, {"k": 0}, {"most": 0}])
def test_an_option_that_makes_no_graph_is_refused(options):
    with pytest.raises(ValueError, match="must be"):
        build("lame", None, HALF, **options)


def test_features_are_asked_for():
    with pytest.raises(ValueError, match="features"):
        build("lame", None, HALF).replay(np.zeros(3))
