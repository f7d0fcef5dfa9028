import numpy as np
import pytest
import torch

from ploc_lab.methods import build
from ploc_lab.methods.cotta import CoTTA


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def test_steps_are_the_formulas(tiny, moved):
    net, options = tiny.net(), {"noise": 0.2, "views": 8, "lr": 1e-2, "slow": 0.9, "confidence": 0.65}
    cotta = CoTTA(net, tiny.source, restore=0.0, seed=7, **options)
    w, teacher, anchor = tiny.weights(net), tiny.weights(net), tiny.weights(net)
    m, v = (dict.fromkeys(w, 0) for _ in range(2))
    draws, used = np.random.default_rng(7), set()
    for t, rows in enumerate((tiny.rows[:4], tiny.rows[4:5], tiny.rows[5:6], tiny.rows[6:20]), 1):
        p = sigmoid(tiny.logits(anchor, rows))
        target = tiny.logits(teacher, rows)
        noise = draws.normal(0, 0.2, (8, *rows.shape)).astype(np.float32)
        unsure = np.maximum(p, 1 - p).mean() < 0.65
        used.add(bool(unsure))
        if unsure:
            target = np.mean([tiny.logits(teacher, rows + n) for n in noise], axis=0)
        np.testing.assert_allclose(cotta.respond(rows).scores, target, atol=2e-5)
        q = sigmoid(target)

        def loss(w, rows=rows, q=q):
            s = sigmoid(tiny.logits(w, rows))
            return -(q * np.log(s) + (1 - q) * np.log(1 - s)).mean()

        g = tiny.gradient(loss, w, list(w))
        for k in w:
            m[k] = 0.9 * m[k] + 0.1 * g[k]
            v[k] = 0.999 * v[k] + 0.001 * g[k] ** 2
            w[k] = w[k] - 1e-2 * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
            teacher[k] = 0.9 * teacher[k] + 0.1 * w[k]
            firm = np.abs(g[k]) > 1e-6  # below, Adam makes a whole step of what float32 rounds
            np.testing.assert_allclose(moved(cotta)[k][firm], w[k][firm], atol=2e-4)
            w[k], teacher[k] = (
                source[k].double().numpy()[0].copy() for source in (cotta.stack.params, cotta.teacher)
            )
    assert used == {True, False}


def test_batch_norm_sees_each_noisy_copy_by_itself(tiny):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 1),
    ).eval()
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)
    found = CoTTA(net, tiny.source, noise=0.5, views=5, confidence=1.0, seed=7).respond(x).scores
    noise = np.random.default_rng(7).normal(0, 0.5, (5, *x.shape)).astype(np.float32)
    copies = [build("bn_stats", net, tiny.source).respond(x + n).scores for n in noise]
    np.testing.assert_allclose(found, np.mean(copies, axis=0), atol=1e-5)


def test_without_noise_it_is_the_source_to_the_bit(tiny):
    cotta = build("cotta", tiny.net(), tiny.source, noise=0.0)
    for i in range(0, 60, 6):
        cotta.predict(tiny.rows[i : i + 6])
    assert torch.equal(cotta.stack.memory, cotta.start)
    assert torch.equal(cotta.memory, cotta.start)


def test_restoring_everything_is_no_student(tiny):
    cotta = build("cotta", tiny.net(), tiny.source, noise=0.3, confidence=1.0, restore=1.0)
    cotta.predict(tiny.rows)
    assert torch.equal(cotta.stack.memory, cotta.start)
    assert not torch.equal(cotta.memory, cotta.start), "the teacher has seen the student before"


def test_each_number_is_restored_with_the_given_probability():
    net = torch.nn.Linear(200, 100).eval()
    from ploc_lab.methods import SourceInfo

    cotta = CoTTA(net, SourceInfo(np.full(100, 0.01)), restore=0.1)
    hits = torch.zeros_like(cotta.start)
    for _ in range(50):
        cotta.stack.memory.copy_(cotta.start + 1)
        cotta._restore()
        hits += cotta.stack.memory == cotta.start
    assert hits.mean().item() / 50 == pytest.approx(0.1, abs=0.002)
    assert hits.var().item() == pytest.approx(50 * 0.1 * 0.9, rel=0.05), "as independent draws have it"


def test_a_probability_is_asked_for(tiny):
    with pytest.raises(ValueError, match=r"1\.5"):
        CoTTA(tiny.net(), tiny.source, restore=1.5)
