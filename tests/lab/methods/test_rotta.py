import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from ploc_lab.methods import SourceInfo
from ploc_lab.methods.augment import strong
from ploc_lab.methods.rotta import Memory, RoTTA

SOURCE = SourceInfo(np.array([0.6, 0.4]))


def table(classes=1):
    return shaken(nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, classes)))


def picture():
    return shaken(
        nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, 1),
        )
    )


def shaken(net):
    torch.manual_seed(3)
    with torch.no_grad():
        for tensor in (net[1].weight, net[1].bias, net[1].running_mean):
            tensor.normal_()
        net[1].running_var.uniform_(0.5, 2)
        net[-1].weight.mul_(4)
    return net.eval()


def rows(net, n):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(n, 5)) if isinstance(net[0], nn.Linear) else rng.uniform(size=(n, 3, 8, 8))
    return torch.from_numpy(drawn.astype(np.float32))


class Network:
    """One of the two networks in float64: statistics, scale and offset by hand."""

    def __init__(self, net):
        self.w = {name: v.double() for name, v in net.state_dict().items()}
        self.flat, self.last = isinstance(net[0], nn.Linear), len(net) - 1
        self.mean, self.var = self.w["1.running_mean"], self.w["1.running_var"]
        self.theta = [self.w["1.weight"], self.w["1.bias"]]

    def __call__(self, x, theta=None, take_in=False):
        weight, bias = theta or self.theta
        w, b = self.w["0.weight"], self.w["0.bias"]
        x = x.double() @ w.T + b if self.flat else functional.conv2d(x.double(), w, b)
        mean, var = self.mean, self.var
        if take_in:
            channels = x.transpose(0, 1).flatten(1)
            mean = 0.95 * mean + 0.05 * channels.mean(1)
            var = 0.95 * var + 0.05 * channels.var(1, unbiased=False)
            self.mean, self.var = mean.detach(), var.detach()
        wide = (-1,) if self.flat else (-1, 1, 1)
        x = (x - mean.view(wide)) / (var.view(wide) + 1e-5).sqrt() * weight.view(wide) + bias.view(wide)
        x = x.relu() if self.flat else x.relu().mean((2, 3))
        return x @ self.w[f"{self.last}.weight"].T + self.w[f"{self.last}.bias"]


def both(z):
    return torch.cat([1 - z.sigmoid(), z.sigmoid()], 1) if z.shape[1] == 1 else z.softmax(1)


class Reference:
    """RoTTA step by step: who is remembered, what is learnt from them, and who answers."""

    def __init__(self, net, classes, *, capacity, every, lr=0.0, slow=1.0):
        self.student, self.teacher = Network(net), Network(net)
        self.kept, self.capacity, self.every = [[] for _ in range(classes)], capacity, every
        self.lr, self.slow, self.seen, self.t = lr, slow, 0, 0
        self.m, self.v = [0, 0], [0, 0]

    def score(self, age, entropy):
        return 1 / (1 + math.exp(-age / self.capacity)) + entropy / math.log(len(self.kept))

    def add(self, row, label, entropy):
        classes, full = [label], True
        if len(self.kept[label]) < self.capacity / len(self.kept):
            most = max(len(kept) for kept in self.kept)
            classes = [k for k, kept in enumerate(self.kept) if len(kept) == most]
            full = sum(len(kept) for kept in self.kept) >= self.capacity
        enters = True
        if full:
            worst, place = -1, None
            for k in classes:
                for i, (_, h, age) in enumerate(self.kept[k]):
                    if self.score(age, h) >= worst:
                        worst, place = self.score(age, h), (k, i)
            enters = worst > self.score(0, entropy)
            if enters:
                self.kept[place[0]].pop(place[1])
        if enters:
            self.kept[label].append((row, entropy, 0))
        self.kept = [[(x, h, age + 1) for x, h, age in kept] for kept in self.kept]

    def respond(self, x, view):
        z = self.teacher(x)
        p = both(z)
        for row, q in zip(x, p, strict=True):
            self.add(row, int(q.argmax()), float(-(q * (q + 1e-6).log()).sum()))
            self.seen += 1
            if self.seen % self.every == 0:
                self.learn(view)
        return z

    def learn(self, view):
        kept = [item for one in self.kept for item in one]
        x, age = torch.stack([row for row, _, _ in kept]), torch.tensor([a / self.capacity for *_, a in kept])
        target = both(self.teacher(x, take_in=True))
        theta = [p.clone().requires_grad_() for p in self.student.theta]
        told = both(self.student(view(x), theta, take_in=True)).log()
        weight = torch.exp(-age) / (1 + torch.exp(-age))
        grads = torch.autograd.grad((-(target * told).sum(1) * weight).mean(), theta)
        self.t += 1
        for i, g in enumerate(grads):
            self.m[i], self.v[i] = 0.9 * self.m[i] + 0.1 * g, 0.999 * self.v[i] + 0.001 * g**2
            step = (self.m[i] / (1 - 0.9**self.t)) / ((self.v[i] / (1 - 0.999**self.t)).sqrt() + 1e-8)
            self.student.theta[i] = self.student.theta[i] - self.lr * step
            self.teacher.theta[i] = (
                self.slow * self.teacher.theta[i] + (1 - self.slow) * self.student.theta[i]
            )


@pytest.mark.parametrize(("kind", "classes"), [(table, 1), (lambda: table(3), 3), (picture, 1)])
def test_steps_are_the_formulas(kind, classes):
    net, seed = kind(), 5
    source = SOURCE if classes == 1 else SourceInfo(np.full(3, 1 / 3))
    options = {"capacity": 8, "every": 6, "lr": 0.05, "slow": 0.7}
    rotta = RoTTA(net, source, seed=seed, **options)
    reference = Reference(net, max(classes, 2), **options)
    chance = torch.Generator().manual_seed(seed)

    def view(x):
        if x.ndim == 4:
            return strong(x, chance)
        return x + 0.005 * torch.randn(x.shape, generator=chance)

    for part in torch.split(rows(net, 40), [1, 10, 1, 16, 12]):  # some batches see two steps, some none
        expected = reference.respond(part, view).detach().numpy()
        found = rotta.respond(part).scores
        np.testing.assert_allclose(found, expected[:, 0] if classes == 1 else expected, atol=1e-4)
    for ours, theirs in ((rotta.student, reference.student), (rotta.teacher, reference.teacher)):
        np.testing.assert_allclose(ours[1].weight.detach(), theirs.theta[0], atol=1e-4)
        np.testing.assert_allclose(ours[1].bias.detach(), theirs.theta[1], atol=1e-4)
        np.testing.assert_allclose(ours[1].mean, theirs.mean, atol=1e-4)
        np.testing.assert_allclose(ours[1].var, theirs.var, rtol=1e-4)
    assert rotta.report()["steps"] == 6
    assert rotta.n_adapted == 12


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1.09)), min_size=1, max_size=40),
    st.sampled_from([3, 4, 8]),
)
def test_the_memory_is_the_written_rule(stream, capacity):
    memory, reference = Memory(capacity, 3), Reference(table(3), 3, capacity=capacity, every=1)
    for i, (label, entropy) in enumerate(stream):
        memory.add(torch.tensor(i), label, entropy)
        reference.add(torch.tensor(i), label, entropy)
        found = [(int(item.row), item.age) for item in memory.items()]
        assert found == [(int(row), age) for kept in reference.kept for row, _, age in kept]
        assert len(found) <= capacity
        assert all(len(kept) < capacity / 3 + 1 for kept in memory.kept)


def test_a_norm_without_running_statistics_is_refused():
    net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6, track_running_stats=False)).eval()
    with pytest.raises(ValueError, match="running statistics"):
        RoTTA(net, SOURCE)
