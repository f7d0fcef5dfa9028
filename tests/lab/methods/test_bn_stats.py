import numpy as np
import pytest
import torch
from torch import nn

from ploc_lab.methods import SourceInfo, build

SOURCE = SourceInfo(np.array([0.5, 0.5]))


def network():
    torch.manual_seed(5)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 1),
    ).eval()
    with torch.no_grad():
        net[1].weight.normal_(), net[1].bias.normal_()
    return net


@pytest.mark.parametrize("size", [1, 4, 9])
def test_a_batch_is_normalised_by_itself_and_nothing_moves(size):
    net = network()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(9, 3, 6, 6)).astype(np.float32))
    method = build("bn_stats", net, SOURCE)
    for part in torch.split(x, size):
        maps = net[0](part).detach().double()
        mean = maps.mean((0, 2, 3), keepdim=True)
        var = ((maps - mean) ** 2).mean((0, 2, 3), keepdim=True)
        maps = (maps - mean) / (var + 1e-5).sqrt()
        maps = maps * net[1].weight.detach().view(4, 1, 1) + net[1].bias.detach().view(4, 1, 1)
        expected = maps.relu().mean((2, 3)) @ net[5].weight.detach().double().T + net[5].bias.detach()
        np.testing.assert_allclose(method.respond(part).scores, expected[:, 0], atol=1e-5)
    report = method.report()
    assert report["n_adapted"] == report["steps"] == report["state"] == 0
    assert report["skipped"] == {}


@pytest.mark.parametrize("name", ["tent", "eata", "sar"])
def test_it_is_the_first_answer_of_the_methods_that_it_controls(name):
    x = np.random.default_rng(1).normal(size=(7, 3, 6, 6)).astype(np.float32)
    forward = build("bn_stats", network(), SOURCE).respond(x)
    np.testing.assert_allclose(build(name, network(), SOURCE).respond(x).scores, forward.scores, atol=1e-5)
