import math

import numpy as np
import pytest
import torch

from ploc_lab import models
from ploc_lab.methods import build
from ploc_lab.methods.sar import NO_ROW, SAR


def test_climb_and_step_are_the_formulas(tiny, moved):
    net = tiny.net()
    sar = SAR(net, tiny.source, lr=0.05, margin=0.8, reset=0.0)
    w, v, ema, e0 = tiny.weights(net), dict.fromkeys(tiny.ln, 0.0), None, 0.8 * math.log(2)
    for rows in (tiny.rows[:6], tiny.rows[6:7], tiny.rows[7:20], tiny.rows[20:21], tiny.rows[21:30]):
        z = tiny.logits(w, rows)
        np.testing.assert_allclose(sar.respond(rows).scores, z, atol=2e-5)
        keep = tiny.entropy(z) < e0

        def mean(w, rows=rows, keep=keep):
            return tiny.entropy(tiny.logits(w, rows))[keep].mean() if keep.any() else 0.0

        g = tiny.gradient(mean, w, tiny.ln)
        norm = math.sqrt(sum((a**2).sum() for a in g.values()))
        top = w | {k: w[k] + 0.05 * g[k] / (norm + 1e-12) for k in g}
        keep2 = keep & (tiny.entropy(tiny.logits(top, rows)) < e0)

        def mean2(w, rows=rows, keep=keep2):
            return tiny.entropy(tiny.logits(w, rows))[keep].mean() if keep.any() else 0.0

        g = tiny.gradient(mean2, dict(top), tiny.ln)
        if keep2.any():
            ema = mean2(top) if ema is None else 0.9 * ema + 0.1 * mean2(top)
        for k in tiny.ln:
            v[k] = 0.9 * v[k] + g[k]
            w[k] = w[k] - 0.05 * v[k]
            np.testing.assert_allclose(moved(sar)[k], w[k], atol=2e-5)
    np.testing.assert_allclose(sar.running.item(), ema, rtol=1e-4)


def test_an_empty_set_moves_by_momentum_alone(tiny, moved):
    net = tiny.net()
    unsure = next(x for x in tiny.rows if tiny.entropy(tiny.logits(tiny.weights(net), x[None]))[0] > 0.6)
    sar = SAR(net, tiny.source, lr=0.05, reset=0.0)
    before = moved(sar)["top.weight"].copy()
    sar.respond(unsure[None])
    assert np.array_equal(moved(sar)["top.weight"], before)
    assert math.isnan(sar.running.item())
    sar.optim.velocity[0].fill_(1.0)
    sar.respond(unsure[None])
    np.testing.assert_allclose(moved(sar)["top.weight"], before - 0.05 * 0.9, atol=1e-6)
    assert sar.report()["skipped"] == {NO_ROW: 2}


def test_a_collapsed_entropy_restores_the_source_again_and_again(tiny, moved):
    sar = SAR(tiny.net(), tiny.source, lr=0.05, margin=1.0, reset=10.0)
    start = moved(sar)["top.weight"].copy()
    for i in range(3):
        sar.respond(tiny.rows[8 * i : 8 * i + 8])
        assert np.array_equal(moved(sar)["top.weight"], start)
        assert sar.optim.velocity[0].any(), "the released optimiser keeps its momentum over a reset"
    assert sar.report()["resets"] == 3
    assert not math.isnan(sar.running.item()), "as released, the running loss survives the reset"


@pytest.mark.parametrize(
    ("backbone", "scalars"), [("mlp", 0), ("ft_transformer", 256), ("tab_transformer", 0)]
)
def test_the_official_collection(backbone, scalars, tiny):
    net = models.build(backbone, 16).eval()
    assert build("sar", net, tiny.source).n_adapted == scalars
    assert build("sar_ln", net, tiny.source).n_adapted == (32 if backbone == "tab_transformer" else scalars)


@pytest.mark.parametrize(
    ("batch", "rate"), [(1, 3.125e-5), (2, 3.125e-5), (32, 5e-4), (64, 1e-3), (512, 1e-3)]
)
def test_the_rate_follows_the_first_batch(batch, rate, tiny):
    sar = build("sar", tiny.net(), tiny.source)
    rows = np.tile(tiny.rows, (8, 1))
    sar.respond(rows[:batch])
    sar.respond(rows[:3])
    assert sar.optim.lr.item() == pytest.approx(rate)


def test_the_rate_with_batch_norm(tiny):
    sar = SAR(
        torch.nn.Sequential(torch.nn.BatchNorm2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 1)).eval(),
        tiny.source,
    )
    assert [sar._rate(b) for b in (1, 8, 64)] == pytest.approx([1.5625e-5, 6.25e-5, 2.5e-4])
