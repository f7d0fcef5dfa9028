import numpy as np
import pytest
import torch
from torch import nn

from ploc_lab import models
from ploc_lab.methods import build, protocol
from ploc_lab.methods.tent import Tent


def test_two_steps_of_adam_are_the_formulas(tiny, moved):
    net, x = tiny.net(), [tiny.rows[:5], tiny.rows[5:8]]
    tent = build("tent_ln", net, tiny.source)
    w = tiny.weights(net)
    m, v = (dict.fromkeys(tiny.ln, 0) for _ in range(2))
    for t, rows in enumerate(x, 1):
        np.testing.assert_allclose(tent.respond(rows).scores, tiny.logits(w, rows), atol=1e-5)
        g = tiny.gradient(lambda w, rows=rows: tiny.entropy(tiny.logits(w, rows)).mean(), w, tiny.ln)
        for k in tiny.ln:
            m[k] = 0.9 * m[k] + 0.1 * g[k]
            v[k] = 0.999 * v[k] + 0.001 * g[k] ** 2
            w[k] = w[k] - 1e-3 * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
        for k in tiny.ln:
            np.testing.assert_allclose(moved(tent)[k], w[k], atol=2e-6)


def test_nesterov_sgd_is_the_formula(tiny, moved):
    net = tiny.net()
    tent = Tent(net, tiny.source, norm_types=("ln",), optimizer="sgd", lr=0.1)
    w, v = tiny.weights(net), dict.fromkeys(tiny.ln, 0)
    for rows in (tiny.rows[:1], tiny.rows[1:9], tiny.rows[9:11]):
        tent.respond(rows)
        g = tiny.gradient(lambda w, rows=rows: tiny.entropy(tiny.logits(w, rows)).mean(), w, tiny.ln)
        for k in tiny.ln:
            v[k] = 0.9 * v[k] + g[k]
            w[k] = w[k] - 0.1 * (g[k] + 0.9 * v[k])
            np.testing.assert_allclose(moved(tent)[k], w[k], atol=5e-6)


def test_the_answer_precedes_the_last_step(tiny):
    once, twice = (Tent(tiny.net(), tiny.source, norm_types=("ln",), lr=0.05, steps=n) for n in (1, 2))
    x = tiny.rows[:4]
    once.respond(x)
    assert np.array_equal(twice.respond(x).scores, once.respond(x).scores)
    assert twice.report()["steps"] == 2


def test_episodic_forgets_between_batches(tiny):
    tent = Tent(tiny.net(), tiny.source, norm_types=("ln",), lr=0.1, episodic=True)
    first = tent.respond(tiny.rows[:4]).scores
    assert np.array_equal(tent.respond(tiny.rows[:4]).scores, first)


@pytest.mark.parametrize("backbone", ["mlp", "ft_transformer", "tab_transformer"])
@pytest.mark.parametrize("name", ["tent", "eata"])
def test_nothing_is_collected_on_tables(name, backbone, tiny):
    torch.manual_seed(0)
    net = models.build(backbone, 16).eval()
    method = build(name, net, tiny.source)
    x = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
    assert np.array_equal(method.respond(x).scores, protocol.outputs(net, x)[0])
    assert method.report()["n_adapted"] == method.report()["steps"] == 0
    assert method.report()["skipped"] == {"no adaptable parameter": 1}


@pytest.mark.parametrize(
    ("name", "backbone", "scalars"),
    [("tent_ln", "ft_transformer", 256), ("tent_ln", "tab_transformer", 32), ("tent_ln", "mlp", 0)],
)
def test_layer_norms_are_collected_when_asked_for(name, backbone, scalars, tiny):
    assert build(name, models.build(backbone, 16).eval(), tiny.source).n_adapted == scalars


def test_batch_norm_is_collected_and_normalises_by_the_batch(tiny):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 1)
    ).eval()
    x = torch.randn(5, 3, 8, 8)
    tent = build("tent", net, tiny.source)
    assert tent.n_adapted == 8
    trained = nn.Sequential(*net).train()
    with torch.no_grad():
        expected = trained(x)[:, 0].double().numpy()
    net.eval()
    np.testing.assert_allclose(tent.respond(x).scores, expected, atol=1e-5)
    np.testing.assert_allclose(build("bn_stats", net, tiny.source).respond(x).scores, expected, atol=1e-5)


def test_options_are_checked(tiny):
    with pytest.raises(ValueError, match="bn3d"):
        Tent(tiny.net(), tiny.source, norm_types=("bn3d",))
    with pytest.raises(ValueError, match="adamw"):
        Tent(tiny.net(), tiny.source, optimizer="adamw")
