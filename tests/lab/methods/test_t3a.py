import numpy as np
import pytest
import torch

from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.protocol import batches, outputs
from ploc_lab.models.mlp import MLP


def network(classes, seed=0):
    torch.manual_seed(seed)
    return MLP(4, classes, width=8).eval()


def logits(net, x):
    z, f = outputs(net, x, features=True)
    return z, f


def written_out(net, z, f, size, keep):
    """All supports in lists, sorted and summed anew for every batch."""
    w, b = net.head.weight.detach().double().numpy(), net.head.bias.detach().double().numpy()
    rows = z
    if len(w) == 1:
        w, b = np.concatenate([-w, w]) / 2, np.concatenate([-b, b]) / 2
        rows = np.stack([-z / 2, z / 2], axis=1)
    supports, out = [], []

    def join(vectors, values):
        for vector, value in zip(vectors, values, strict=True):
            p = np.exp(value - value.max())
            p /= p.sum()
            entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)))
            supports.append((vector / np.linalg.norm(vector), int(value.argmax()), entropy))

    join(w, w @ w.T + b)
    for part in batches(len(f), size):
        join(f[part], rows[part])
        prototypes = np.zeros_like(w)
        for k in range(len(w)):
            mine = sorted((s for s in supports if s[1] == k), key=lambda s: s[2])[:keep]
            total = np.sum([s[0] for s in mine], axis=0) if mine else np.zeros(w.shape[1])
            prototypes[k] = total / max(np.linalg.norm(total), 1e-12)
        out.append(f[part] @ prototypes.T)
    out = np.concatenate(out)
    return out[:, 1] - out[:, 0] if z.ndim == 1 else out


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("keep", [1, 5, None])
def test_prototypes_are_those_of_all_supports_sorted_anew(classes, size, keep):
    net = network(classes)
    z, f = logits(net, np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32))
    method = build("t3a", net, SourceInfo(np.full(classes, 1 / classes)), keep=keep)
    scores = method.replay(z, f, batch=size).scores
    np.testing.assert_allclose(scores, written_out(net, z, f, size, keep), rtol=1e-9, atol=1e-11)


def test_a_row_is_in_the_supports_before_it_is_answered():
    net = network(2)
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.fill_(-1.0)
    f = np.zeros((1, 8))
    f[0, 3] = 2.0
    method = build("t3a", net, SourceInfo(np.array([0.5, 0.5])))
    score = method.replay(np.array([-1.0]), f).scores[0]
    assert score == -2.0  # class 0's prototype is the row itself, class 1 has none


def test_the_head_scale_multiplies_and_keeps_the_ranking():
    net = network(3)
    z, f = logits(net, np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32))
    source = SourceInfo(np.full(3, 1 / 3))
    raw, scaled = (build("t3a", net, source, scale=scale).replay(z, f).scores for scale in ("raw", "head"))
    length = np.linalg.norm(net.head.weight.detach().double().numpy(), axis=1).mean()
    np.testing.assert_allclose(scaled, raw * length, rtol=1e-12)


def test_what_is_kept_is_bounded_and_counted():
    net = network(2)
    z, f = logits(net, np.random.default_rng(3).normal(size=(500, 4)).astype(np.float32))
    method = build("t3a", net, SourceInfo(np.array([0.5, 0.5])), keep=5)
    method.replay(z, f)
    assert method.state_size <= 2 * 5 * (8 + 2)
    assert method.steps + sum(method.skipped.values()) == 500


def test_a_head_is_needed():
    with pytest.raises(ValueError, match="head"):
        build("t3a", None, SourceInfo(np.array([0.5, 0.5])))
    with pytest.raises(ValueError, match="at least 1"):
        build("t3a", network(2), SourceInfo(np.array([0.5, 0.5])), keep=0)
