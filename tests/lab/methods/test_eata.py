import math

import numpy as np
import torch

from ploc_lab.methods import SourceInfo, Validation, build
from ploc_lab.methods.eata import EATA, NO_ROW
from ploc_lab.methods.losses import entropy


def classes(z):
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], 1)


def test_steps_are_the_formulas(tiny, moved):
    net = tiny.net()
    options = {"norm_types": ("ln",), "lr": 0.05, "margin": 0.8, "cosine": 0.9}
    eata, w = EATA(net, tiny.source, **options), tiny.weights(net)
    e0, v, mean, steps = 0.8 * math.log(2), dict.fromkeys(tiny.ln, 0), None, 0
    for rows in (tiny.rows[:6], tiny.rows[6:20], tiny.rows[20:21], tiny.rows[21:40], tiny.rows[40:41]):
        z = tiny.logits(w, rows)
        p = classes(z)
        keep = tiny.entropy(z) < e0
        if mean is not None:
            keep &= np.abs(p @ mean / np.linalg.norm(p, axis=1) / np.linalg.norm(mean)) < 0.9
        np.testing.assert_allclose(eata.respond(rows).scores, z, atol=2e-5)
        if keep.any():
            steps += 1
            weight = np.exp(e0 - tiny.entropy(z))
            mean = p[keep].mean(0) if mean is None else 0.9 * mean + 0.1 * p[keep].mean(0)

            def loss(w, rows=rows, keep=keep, weight=weight):
                return (weight * tiny.entropy(tiny.logits(w, rows)))[keep].mean()

            g = tiny.gradient(loss, w, tiny.ln)
            for k in tiny.ln:
                v[k] = 0.9 * v[k] + g[k]
                w[k] = w[k] - 0.05 * v[k]
        for k in tiny.ln:
            np.testing.assert_allclose(moved(eata)[k], w[k], atol=1e-5)
    assert 1 < steps < 5, "the case must hold steps and skips"
    assert eata.report()["steps"] == steps
    assert eata.report()["skipped"] == {NO_ROW: 5 - steps}


def test_on_two_classes_it_all_but_stops_after_the_first_reliable_row(tiny):
    net = tiny.net()
    with torch.no_grad():
        net.head.weight.mul_(4)
    eata = build("eata_ln", net, tiny.source)
    z = np.concatenate([eata.respond(tiny.rows[i : i + 1]).scores for i in range(64)])
    reliable = entropy(torch.tensor(z)[None, :, None])[0].numpy() < 0.4 * math.log(2)
    assert reliable.sum() > 20
    first = np.sign(z[reliable][0])
    opposite = reliable & (np.sign(z) != first)
    assert eata.report()["steps"] <= 1 + opposite.sum(), "only a contradicting row can pass the cosine test"


def test_the_margin_of_two_classes_is_a_probability_of_921():
    p = 0.9206
    assert abs(-p * math.log(p) - (1 - p) * math.log(1 - p) - 0.4 * math.log(2)) < 1e-3


def test_fisher_is_the_mean_squared_gradient_and_holds_back(tiny, moved):
    net = tiny.net()
    validation = Validation(tiny.rows, np.zeros(64, dtype=int), tiny.logits(tiny.weights(net), tiny.rows))
    source = SourceInfo(np.array([0.7, 0.3]), validation)
    eata = EATA(net, source, norm_types=("ln",), fisher=1.0, fisher_rows=48)
    w = tiny.weights(net)
    expected = dict.fromkeys(tiny.ln, 0)

    def loss(w):
        z = tiny.logits(w, tiny.rows[:48])
        return np.log1p(np.exp(-np.abs(z))).mean()  # cross-entropy to the own label

    g = tiny.gradient(loss, w, tiny.ln)
    for k in expected:
        np.testing.assert_allclose(eata.weights[k][0].numpy(), g[k] ** 2, rtol=1e-3, atol=1e-9)
    free, held = (
        EATA(net, source, norm_types=("ln",), lr=0.05, cosine=2, margin=1, fisher=f) for f in (0, 100)
    )
    for rows in (tiny.rows[:20], tiny.rows[20:40], tiny.rows[40:]):
        free.respond(rows), held.respond(rows)
    far = {m: sum(((moved(m)[k] - w[k]) ** 2).sum() for k in w if k in tiny.ln) for m in (free, held)}
    assert far[held] < far[free]
