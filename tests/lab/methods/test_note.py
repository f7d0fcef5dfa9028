import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from ploc_lab.methods import SourceInfo
from ploc_lab.methods.note import NOTE, InstanceAware, Reservoir

SOURCE = SourceInfo(np.array([0.6, 0.4]))


def network(classes=1):
    torch.manual_seed(2)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, classes),
    ).eval()
    with torch.no_grad():
        for tensor in (net[1].weight, net[1].bias, net[1].running_mean):
            tensor.normal_()
        net[1].running_var.uniform_(0.5, 2)
    return net


def images(n, seed=0):
    return 3 * torch.from_numpy(np.random.default_rng(seed).normal(size=(n, 3, 7, 7)).astype(np.float32))


def shrink(d, slack):
    return torch.where(d > slack, d - slack, torch.where(d < -slack, d + slack, torch.zeros_like(d)))


def aware(x, theta, mean, var, k):
    """The published norm, row by row and channel by channel."""
    weight, bias = theta
    area = x.shape[2] * x.shape[3]
    out = []
    for row in x:
        m, v = row.flatten(1).mean(1), row.flatten(1).var(1, unbiased=True)
        m = mean + shrink(m - mean, k * ((var + 1e-5) / area).sqrt())
        v = (var + shrink(v - var, k * (var + 1e-5) * (2 / (area - 1)) ** 0.5)).clamp(min=0)
        scaled = (row - m.view(-1, 1, 1)) / (v.view(-1, 1, 1) + 1e-5).sqrt()
        out.append(scaled * weight.view(-1, 1, 1) + bias.view(-1, 1, 1))
    return torch.stack(out)


class Reference:
    """NOTE in float64: the forward pass by hand, one Adam written out."""

    def __init__(self, net, k, lr):
        self.w = {name: v.double() for name, v in net.state_dict().items()}
        self.theta = [self.w["1.weight"].clone(), self.w["1.bias"].clone()]
        self.m, self.v, self.t, self.k, self.lr = [0, 0], [0, 0], 0, k, lr

    def logits(self, x, theta, mean, var):
        x = functional.conv2d(x.double(), self.w["0.weight"], self.w["0.bias"])
        x = aware(x, theta, mean, var, self.k).relu()
        return x.mean((2, 3)) @ self.w["5.weight"].T + self.w["5.bias"]

    def answer(self, x):
        return self.logits(x, self.theta, self.w["1.running_mean"], self.w["1.running_var"])

    def learn(self, rows, momentum):
        x = functional.conv2d(rows.double(), self.w["0.weight"], self.w["0.bias"])
        channels = x.transpose(0, 1).flatten(1)
        mean, var = channels.mean(1), channels.var(1, unbiased=True)
        theta = [p.clone().requires_grad_() for p in self.theta]
        z = self.logits(rows, theta, mean, var)
        p = torch.cat([1 - z.sigmoid(), z.sigmoid()], 1) if z.shape[1] == 1 else z.softmax(1)
        grads = torch.autograd.grad(-(p * (p + 1e-6).log()).mean(), theta)
        self.t += 1
        for i, g in enumerate(grads):
            self.m[i], self.v[i] = 0.9 * self.m[i] + 0.1 * g, 0.999 * self.v[i] + 0.001 * g**2
            change = (self.m[i] / (1 - 0.9**self.t)) / ((self.v[i] / (1 - 0.999**self.t)).sqrt() + 1e-8)
            self.theta[i] = self.theta[i] - self.lr * change
        for name, seen in (("mean", mean), ("var", var)):
            self.w[f"1.running_{name}"] = (1 - momentum) * self.w[f"1.running_{name}"] + momentum * seen


@pytest.mark.parametrize("classes", [1, 3])
def test_rows_are_answered_alone_and_learnt_from_the_memory(classes):
    net, x = network(classes), images(30)
    source = SOURCE if classes == 1 else SourceInfo(np.full(3, 1 / 3))
    note = NOTE(net, source, k=0.5, every=8, lr=0.02, momentum=0.1)
    reference = Reference(net, k=0.5, lr=0.02)
    at = 0
    for part in torch.split(x, [1, 9, 15, 5]):
        expected = []
        for row in part:
            expected.append(reference.answer(row[None])[0])
            at += 1
            if at == 8:  # the first eight rows are all remembered, in their order
                reference.learn(x[:8], momentum=0.1)
        if at <= 15:
            found = note.respond(part).scores
            want = torch.stack(expected).numpy()
            np.testing.assert_allclose(found, want[:, 0] if classes == 1 else want, atol=2e-5)
    np.testing.assert_allclose(note.norms[0].weight.detach(), reference.theta[0], atol=2e-5)
    np.testing.assert_allclose(note.norms[0].bias.detach(), reference.theta[1], atol=2e-5)
    np.testing.assert_allclose(note.norms[0].var, reference.w["1.running_var"], atol=1e-4)
    assert note.report()["steps"] == 1
    assert note.n_adapted == 8


def test_later_steps_learn_from_what_the_memory_holds():
    net, x = network(), images(32)
    note = NOTE(net, SOURCE, every=8, lr=0.02)
    reference = Reference(net, k=4.0, lr=0.02)
    for i, row in enumerate(x, 1):
        np.testing.assert_allclose(
            note.respond(row[None]).scores, reference.answer(row[None])[:, 0], atol=5e-5
        )
        if i % 8 == 0:
            reference.learn(torch.stack([kept for kept, _ in note.memory.items]), momentum=0.01)
    assert note.report()["steps"] == 4


def test_within_the_slack_the_norm_is_batch_norm_and_a_pixel_has_no_statistics():
    bn = network()[1]
    x = torch.randn(5, 4, 6, 6)
    np.testing.assert_allclose(InstanceAware(bn, 1e6, 0.1)(x).detach(), bn(x).detach(), atol=1e-5)
    own = InstanceAware(bn, 0.0, 0.1)(x).detach()
    scale, offset = bn.weight.detach().view(4, 1, 1), bn.bias.detach().view(4, 1, 1)
    np.testing.assert_allclose(own.mean((2, 3)), offset[:, 0, 0].expand(5, 4), atol=1e-5)
    np.testing.assert_allclose(own.std((2, 3)), scale[:, 0, 0].abs().expand(5, 4), rtol=1e-3)
    pixel = torch.randn(5, 4, 1, 1)
    np.testing.assert_allclose(InstanceAware(bn, 0.0, 0.1)(pixel).detach(), bn(pixel).detach(), atol=1e-5)


def test_no_class_crowds_out_another():
    memory = Reservoir(12, np.random.default_rng(0))
    for i in range(500):
        memory.add(torch.tensor([float(i)]), 0)
    assert len(memory.items) == 12
    for i in range(6):
        memory.add(torch.tensor([500.0 + i]), 1)
    counts = np.bincount([label for _, label in memory.items])
    assert counts.tolist() == [6, 6], "a rare class takes the places of a largest one"
    for i in range(200):
        memory.add(torch.tensor([1000.0 + i]), i % 2)
    counts = np.bincount([label for _, label in memory.items])
    assert counts.tolist() == [6, 6]


def test_a_class_is_remembered_uniformly_over_time():
    kept = np.zeros(40)
    for seed in range(2000):
        memory = Reservoir(8, np.random.default_rng(seed))
        for i in range(40):
            memory.add(torch.tensor(i), 0)
        kept[[int(row) for row, _ in memory.items]] += 1
    # Each of the 40 rows is kept by a fifth of 2000 streams: a binomial of deviation 18.
    assert np.abs(kept - 400).max() < 5 * 18


def test_a_norm_without_running_statistics_is_refused():
    with pytest.raises(ValueError, match="running statistics"):
        NOTE(nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)).eval(), SOURCE)
