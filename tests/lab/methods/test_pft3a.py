import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.ftat import NO_PRIOR
from ploc_lab.methods.pft3a import NO_START, NO_SUBSPACE, PFT3A, subspace_kl


def two(z):
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], 1)


def row_loss(z, kind):
    p = two(z)
    if kind == "shannon":
        return -(p * np.log(p)).sum(1)
    q = np.exp(p) / np.exp(p).sum(1, keepdims=True)
    return -(q * np.log(q)).sum(1) * np.abs(p[:, 0] - p[:, 1])


def kl_of(f, sure, unsure, constants=None):
    """The subspace term of one network from numpy's own covariance; directions and variances may be given."""
    mu = f[sure].mean(0)
    if constants is None:
        values, vectors = np.linalg.eigh(np.cov(f[sure].T))
        constants = np.maximum(values[-5:], 1e-6), vectors[:, -5:]
    values, vectors = constants
    q = (f[unsure] - mu) @ vectors
    m, v = q.mean(0), np.maximum(q.var(0, ddof=1), 1e-6)
    return (0.5 * (np.log(values) - np.log(v) + (v + m**2) / (values + 1e-8) - 1)).mean(), constants


@pytest.mark.parametrize("kind", ["shannon", "code"])
def test_a_batched_stream_is_the_formulas(kind, tiny, moved):
    net = tiny.net()
    pft3a = PFT3A(net, tiny.source, entropy=kind, lr=0.05)
    w, pi, pi0, started = tiny.weights(net), np.array([0.5, 0.5]), np.array([0.5, 0.5]), False
    used = 0
    for rows in (tiny.rows[:1], tiny.rows[:32], tiny.rows[32:40], tiny.rows[32:]):
        z = tiny.logits(w, rows)
        p = two(z)
        sure = p.max(1) > 0.7
        if not started and sure.any() and (~sure).any():
            pi0, pi, started = p[sure].mean(0), p[~sure].mean(0), True
        t = p * pi / pi0
        t /= t.sum(1, keepdims=True)
        s, u = t.max(1) > 0.7, t.max(1) < 0.7
        constants = None
        if s.sum() >= 6 and u.sum() >= 2:
            used += 1
            _, constants = kl_of(tiny.features(w, rows), s, u)

        def loss(w, rows=rows, s=s, u=u, constants=constants):
            total = row_loss(tiny.logits(w, rows), kind).mean()
            return (
                total
                if constants is None
                else total + 0.1 * kl_of(tiny.features(w, rows), s, u, constants)[0]
            )

        g = tiny.gradient(loss, w, list(w))
        for k in w:
            w[k] = w[k] - 0.05 * g[k]
        c = t.argmax(1)
        if started and 0 < c.sum() < len(c) and s.any():
            a = np.stack([t[c == k].mean(0) for k in (0, 1)])
            pi = np.exp(pi - 0.1 * np.linalg.inv(a) @ t[s].mean(0))
            pi /= pi.sum()
        out = p * pi / pi0
        np.testing.assert_allclose(pft3a.predict(rows), (out / out.sum(1, keepdims=True))[:, 1], atol=2e-5)
        for k, value in moved(pft3a).items():
            np.testing.assert_allclose(value, w[k], atol=1e-4)
    assert used >= 2
    assert started


@pytest.mark.parametrize("rows", [8, 40])
def test_the_kl_is_numpys_whichever_side_is_smaller(rows):
    f = np.random.default_rng(rows).normal(size=(rows, 20)) @ np.diag(np.linspace(1, 3, 20))
    sure = np.arange(rows) % 4 != 0
    expected, _ = kl_of(f, sure, ~sure)
    given_f = torch.from_numpy(f).float()[None].expand(2, -1, -1)
    masks = torch.from_numpy(np.stack([sure, np.ones(rows, dtype=bool)]))
    kl, defined = subspace_kl(given_f, masks, ~masks)
    assert kl[0].item() == pytest.approx(expected, rel=1e-3)
    assert kl[1].item() == 0
    assert defined.tolist() == [rows > 6, False]


def test_one_row_leaves_only_the_entropy_step(tiny):
    pft3a = build("pft3a", tiny.net(), tiny.source)
    w = tiny.weights(tiny.net())
    for i in range(64):
        row = tiny.rows[i : i + 1]
        np.testing.assert_allclose(pft3a.respond(row).scores, tiny.logits(w, row), atol=1e-4)
        g = tiny.gradient(lambda w, row=row: tiny.entropy(tiny.logits(w, row))[0], w, list(w))
        w = {k: w[k] - 1e-5 * g[k] for k in w}
    assert pft3a.report()["skipped"] == {NO_SUBSPACE: 64, NO_START: 64}
    assert pft3a.report()["steps"] == 64
    assert pft3a.rates.tolist() == pft3a.first_rates.tolist() == [[0.5, 0.5]]


def test_the_first_prior_waits_for_both_kinds_of_row(tiny):
    pft3a = build("pft3a", tiny.net(), tiny.source)
    z = tiny.logits(tiny.weights(tiny.net()), tiny.rows)
    confident = two(z).max(1) > 0.7
    pft3a.predict(tiny.rows[confident])
    assert not pft3a.started.any()
    pft3a.predict(tiny.rows[~confident])
    assert not pft3a.started.any()
    assert pft3a.report()["skipped"][NO_START] == 2
    pft3a.predict(tiny.rows)
    assert pft3a.started.all()
    np.testing.assert_allclose(pft3a.first_rates[0], two(z)[confident].mean(0), atol=2e-3)


def test_the_stream_prior_is_the_mean_over_all_past_rows(tiny):
    pft3a = build("pft3a_stream", tiny.net(), tiny.source, lr=0.0)
    p = two(tiny.logits(tiny.weights(tiny.net()), tiny.rows))
    confident = p.max(1) > 0.7
    for i in range(0, 64, 7):
        pft3a.predict(tiny.rows[i : i + 7])
    np.testing.assert_allclose(pft3a.first_rates[0], p[confident].mean(0), atol=1e-5)
    np.testing.assert_allclose(pft3a.rates[0], p[~confident].mean(0), atol=1e-5)


@pytest.mark.parametrize("name", ["pft3a", "pft3a_code", "pft3a_lr1e3", "pft3a_stream"])
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 10**6), scale=st.floats(0, 60), batch=st.sampled_from([1, 7, 9]))
def test_no_batch_makes_a_nan(name, seed, scale, batch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).eval()
    method = build(name, net, SourceInfo(np.array([0.5, 0.5])))
    rng = np.random.default_rng(seed)
    equal = np.full((batch, 4), rng.normal())
    for rows in (equal, scale * rng.normal(size=(batch, 4)), equal * scale):
        assert np.isfinite(method.predict(rows.astype(np.float32))).all()
    assert method.report()["nan"] == 0
    assert bool(torch.isfinite(method.stack.memory).all())


def test_one_predicted_class_keeps_the_prior(tiny):
    net = tiny.net()
    with torch.no_grad():
        net.head.bias.add_(-4)
    pft3a = build("pft3a", net, tiny.source)
    pft3a.predict(tiny.rows)
    kept = pft3a.rates.clone()
    if pft3a.started.all():
        pft3a.predict(tiny.rows)
        assert torch.equal(pft3a.rates, kept)
        assert pft3a.report()["skipped"][NO_PRIOR] == 2


def test_options_are_checked(tiny):
    with pytest.raises(ValueError, match="renyi"):
        PFT3A(tiny.net(), tiny.source, entropy="renyi")
