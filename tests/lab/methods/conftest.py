"""A tiny network twice: in torch, and in float64 numpy with gradients by central differences."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from ploc_lab.methods import SourceInfo


class Tiny(nn.Module):
    """LayerNorm, Linear, ReLU, Linear: every kind of parameter that the tabular rivals can move."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.top = nn.LayerNorm(3)
        self.hidden = nn.Linear(3, 6)
        self.head = nn.Linear(6, 1)
        with torch.no_grad():
            for p in self.parameters():
                p.add_(0.5 * torch.randn_like(p))
            self.head.weight.mul_(5)

    def features(self, x):
        return self.hidden(self.top(x)).relu()

    def forward(self, x):
        return self.head(self.features(x))


def weights(net):
    return {k: p.detach().double().numpy().copy() for k, p in net.named_parameters()}


def features(w, x):
    x = np.asarray(x, dtype=np.float64)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return np.maximum((x * w["top.weight"] + w["top.bias"]) @ w["hidden.weight"].T + w["hidden.bias"], 0)


def logits(w, x):
    return (features(w, x) @ w["head.weight"].T + w["head.bias"])[:, 0]


def gradient(loss, w, names, h=1e-6):
    grads = {}
    for name in names:
        grads[name] = np.zeros_like(w[name])
        for i in np.ndindex(w[name].shape):
            value = w[name][i]
            w[name][i] = value + h
            up = loss(w)
            w[name][i] = value - h
            down = loss(w)
            w[name][i] = value
            grads[name][i] = (up - down) / (2 * h)
    return grads


def entropy(z):
    """-p ln p - q ln q, straight from its definition."""
    p = 1 / (1 + np.exp(-z))
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


@pytest.fixture
def tiny():
    rows = np.random.default_rng(3).normal(0, 1, (64, 3)).astype(np.float32)

    def net(seed=0):
        made = Tiny(seed).eval()
        with torch.no_grad():  # both classes are predicted, some rows surely and some not
            made.head.bias.sub_(made(torch.from_numpy(rows)).mean())
        return made

    return SimpleNamespace(
        net=net, weights=weights, features=features, logits=logits,
        gradient=gradient,
        entropy=entropy, rows=rows, source=SourceInfo(np.array([0.7, 0.3])), ln=("top.weight", "top.bias"),
    )  # fmt: skip


@pytest.fixture
def moved():
    """What a method has made of its network's parameters; `copy` tells FTAT's three apart."""

    def read(method, copy=0):
        return {k: p[copy].double().numpy() for k, p in method.stack.params.items()}

    return read
