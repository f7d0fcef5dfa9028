import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab import models
from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.class_rates import next_rates
from ploc_lab.methods.ftat import FTAT, NO_PRIOR, NO_ROW, concentration
from ploc_lab.methods.neighbours import agrees


def softmax(v):
    e = np.exp(v - v.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def two(z):
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], 1)


def ht(p):
    """Entropy of the softmax of probabilities, as the released code has it."""
    q = softmax(p)
    return -(q * np.log(q)).sum(1)


def released(z):
    p = two(z)
    return ht(p) * np.abs(p[:, 0] - p[:, 1])


def paper(z, tilt):
    p = two(z) * tilt
    p = p / p.sum(1, keepdims=True)
    return -(p * np.log(p)).sum(1), np.abs(p[:, 0] - p[:, 1])


def kept_rows(x, labels):
    distance = [[math.dist(a, b) for b in x.astype(float)] for a in x.astype(float)]
    tau = np.mean(distance)
    near = [[j for j in range(len(x)) if distance[i][j] <= tau] for i in range(len(x))]
    return np.array([np.mean(labels[near[i]] != labels[i]) <= 0.3 for i in range(len(x))])


class Reference:
    """FTAT step by step in float64: one net after another, row by row, NaN as the released code has it."""

    def __init__(self, tiny, net, lrs, prior0, loss):
        self.tiny, self.lrs, self.loss = tiny, lrs, loss
        self.w = [tiny.weights(net) for _ in lrs]
        self.pi, self.pi0 = prior0.copy(), prior0

    def step(self, x):
        z = [self.tiny.logits(w, x) for w in self.w]
        r = np.array([1 - released(one).mean() for one in z])
        mean = sum(w * two(one) for w, one in zip(r / np.abs(r).sum(), z, strict=True))
        tilted = mean * self.pi / self.pi0
        tilted /= tilted.sum(1, keepdims=True)
        kept = kept_rows(x, mean.argmax(1))
        for i, w in enumerate(self.w):
            if not kept.any():
                continue

            def loss(w):
                z = self.tiny.logits(w, x)
                if self.loss == "code":
                    return released(z)[kept].mean()
                h, _ = paper(z, self.tilt)
                return (h * self.margin)[kept].mean()

            self.tilt = self.pi / self.pi0
            self.margin = paper(z[i], self.tilt)[1]
            g = self.tiny.gradient(loss, w, list(w))
            for k in w:
                w[k] -= self.lrs[i] * g[k]
        c = tilted.argmax(1)
        sure = tilted.max(1) > 0.7
        if 0 < c.sum() < len(c) and sure.any():
            a = np.stack([tilted[c == k].mean(0) for k in (0, 1)])
            self.pi = softmax(self.pi - 0.1 * np.linalg.inv(a) @ tilted[sure].mean(0))
        out = mean * self.pi / self.pi0
        return out / out.sum(1, keepdims=True)


@pytest.mark.parametrize("loss", ["code", "paper"])
def test_steps_are_the_formulas(loss, tiny, moved):
    net, lrs = tiny.net(), (1e-2, 0.3, 0.1)
    ftat = FTAT(net, tiny.source, lrs=lrs, loss=loss)
    reference = Reference(tiny, net, lrs, tiny.source.prior, loss)
    for rows in (tiny.rows[:16], tiny.rows[16:17], tiny.rows[17:40], tiny.rows[40:42], tiny.rows[42:]):
        expected = reference.step(rows)
        np.testing.assert_allclose(ftat.predict(rows), expected[:, 1], atol=5e-6)
        np.testing.assert_allclose(ftat.rates[0].numpy(), reference.pi, atol=1e-6)
        for i in range(3):
            for k, value in moved(ftat, i).items():
                np.testing.assert_allclose(value, reference.w[i][k], atol=2e-5)
    assert not np.allclose(reference.pi, reference.pi0)


def test_the_released_loss_is_least_at_one_half_and_grows_with_confidence():
    z = torch.tensor([0.0, 0.2, 1.0, 3.0, 8.0], dtype=torch.float64)
    values = concentration(z)
    np.testing.assert_allclose(values.numpy(), released(z.numpy()), atol=1e-12)
    assert values[0] == 0
    assert bool((values.diff() > 0).all())


@pytest.mark.parametrize(
    ("p", "slope"), [(0.6, 0.326), (0.7, 0.267), (0.8, 0.182), (0.9, 0.087), (0.99, 0.008)]
)
def test_the_released_losss_measured_slopes(p, slope):
    z = torch.tensor(math.log(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    concentration(z).backward()
    assert z.grad.item() == pytest.approx(slope, abs=6e-4)


def test_single_rows_are_flattened_towards_one_half_and_the_prior_stays(tiny):
    ftat = FTAT(tiny.net(), tiny.source, lrs=(0.05, 0.05, 0.05))
    for i in range(64):
        ftat.predict(tiny.rows[i : i + 1])
    z = tiny.logits(tiny.weights(tiny.net()), tiny.rows)
    after = np.array(
        [tiny.logits({k: v[0].double().numpy() for k, v in ftat.stack.params.items()}, tiny.rows)]
    )
    assert np.abs(two(after[0])[:, 1] - 0.5).mean() < 0.7 * np.abs(two(z)[:, 1] - 0.5).mean()
    assert np.array_equal(ftat.rates[0], tiny.source.prior)
    assert ftat.report()["skipped"] == {NO_PRIOR: 64}
    assert ftat.report()["steps"] == 64


def test_the_prior_forgets_where_it_came_from(tiny):
    net = tiny.net()
    with torch.no_grad():  # sure answers: A is near the identity, so that A^-1 b lies in [0, 1]
        net.head.weight.mul_(10)
        net.head.bias.mul_(10)
    ftat = FTAT(net, SourceInfo(np.array([0.76, 0.24])), lrs=(0.0, 0.0, 0.0))
    for _ in range(14):
        ftat.predict(tiny.rows)
    # The difference d of the rates becomes tanh((d + 0.1 [-1, 1]) / 2), which settles below 0.1.
    assert np.abs(ftat.rates[0].numpy() - 0.5).max() < 0.05


@pytest.mark.parametrize("batch", [1, 2, 8, 64])
def test_one_predicted_class_freezes_the_prior(batch, tiny):
    net = tiny.net()
    with torch.no_grad():
        net.head.bias.fill_(-50)
    ftat = build("ftat", net, tiny.source)
    for i in range(0, 64, batch):
        ftat.predict(tiny.rows[i : i + batch])
    assert np.array_equal(ftat.rates[0], tiny.source.prior)


def test_no_rate_and_no_prior_is_the_source(tiny):
    ftat = FTAT(tiny.net(), tiny.source, lrs=(0.0,) * 3, prior="none")
    z = tiny.logits(tiny.weights(tiny.net()), tiny.rows)
    for i in range(0, 64, 9):
        np.testing.assert_allclose(ftat.respond(tiny.rows[i : i + 9]).scores, z[i : i + 9], atol=1e-5)


def test_a_tie_is_answered_by_one_half(tiny):
    net = torch.nn.Linear(2, 1).eval()
    with torch.no_grad():
        net.weight.zero_(), net.bias.zero_()
    assert np.array_equal(build("ftat", net, tiny.source).predict(np.ones((4, 2), np.float32)), [0.5] * 4)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_neighbours_are_those_of_a_loop(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    labels = rng.integers(0, 2, (2, n))
    found = agrees(torch.from_numpy(x), torch.from_numpy(labels)).numpy()
    assert np.array_equal(found, [kept_rows(x, row) for row in labels])


@pytest.mark.parametrize("n", [10, 20, 50, 210])
@pytest.mark.parametrize("label", [0, 1])
def test_three_in_ten_may_disagree_whichever_label_they_have(n, label):
    labels = torch.full((1, n), label)
    labels[0, : 3 * n // 10] = 1 - label
    assert agrees(torch.zeros(n, 2), labels).tolist() == [[False] * (3 * n // 10) + [True] * (7 * n // 10)]
    labels[0, 3 * n // 10] = 1 - label
    assert not agrees(torch.zeros(n, 2), labels).any()


def test_equal_rows_are_all_neighbours():
    labels = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 0]])
    assert agrees(torch.full((4, 40), 0.3), labels).tolist() == [[True] * 3 + [False], [False] * 4]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.01, 0.99))
def test_the_prior_is_always_a_prior(ones, rate):
    p = torch.tensor([[[1 - a, a] for a in ones]], dtype=torch.float64)
    rates, valid = next_rates(p, torch.tensor([[1 - rate, rate]], dtype=torch.float64))
    assert bool(torch.isfinite(rates).all())
    assert rates.sum().item() == pytest.approx(1)
    one_class = len({a > 0.5 for a in ones}) == 1
    if one_class or all(max(a, 1 - a) <= 0.7 for a in ones):
        assert not valid.item()


def test_no_row_that_agrees_means_no_step(tiny, moved):
    ftat = FTAT(tiny.net(), tiny.source, lrs=(0.1, 0.1, 0.1))
    z = tiny.logits(tiny.weights(tiny.net()), tiny.rows)
    pair = np.stack([tiny.rows[z.argmax()], tiny.rows[z.argmin()]])
    mix = np.concatenate([pair, pair, pair])
    x = torch.from_numpy(mix)
    assert kept_rows(mix, (z[[z.argmax(), z.argmin()] * 3] > 0).astype(int)).all(), (
        "far apart: each keeps to its own"
    )
    before = moved(ftat)["head.weight"].copy()
    with torch.no_grad():
        gate = agrees(torch.zeros_like(x), torch.tensor([[1, 0] * 3]))
    assert not gate.any()
    net = tiny.net()
    with torch.no_grad():
        net.top.weight.mul_(1e3)
    near = np.float32([[1, 0, -1], [1, -1, 0]])
    w = tiny.weights(tiny.net())
    assert np.array_equal(moved(ftat)["head.weight"], before)
    labels = tiny.logits(w, near) > 0
    report = ftat.report()
    ftat.predict(near)
    stepped = ftat.report()["steps"] - report["steps"]
    assert stepped == int(kept_rows(near, labels.astype(int)).any())
    assert ftat.report()["skipped"].get(NO_ROW, 0) == 1 - stepped


def test_many_classes_are_refused():
    net = models.build("mlp", 4, classes=3).eval()
    with pytest.raises(ValueError, match="3 classes"):
        build("ftat", net, SourceInfo(np.array([0.2, 0.3, 0.5])))


@pytest.mark.parametrize("wrong", [{"loss": "entropy"}, {"prior": "uniform"}])
def test_options_are_checked(wrong, tiny):
    with pytest.raises(ValueError, match=r"entropy|uniform"):
        FTAT(tiny.net(), tiny.source, **wrong)
