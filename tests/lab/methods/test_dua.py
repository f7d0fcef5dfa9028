import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from ploc_lab.methods import SourceInfo, build
from ploc_lab.methods.augment import strong, views
from ploc_lab.methods.dua import DUA

SOURCE = SourceInfo(np.array([0.6, 0.4]))


def network():
    """Two batch norms, the second fed by the first; their running statistics are nobody's."""
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.BatchNorm2d(5),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 1),
    ).eval()  # fmt: skip
    with torch.no_grad():
        for i in (1, 4):
            for tensor in (net[i].weight, net[i].bias, net[i].running_mean):
                tensor.normal_()
            net[i].running_var.uniform_(0.5, 2)
    return net


def images(n, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 3, 8, 8)).astype(np.float32)


class Reference:
    """The network in float64, its two statistics followed by hand."""

    def __init__(self, net):
        self.w = {k: v.double() for k, v in net.state_dict().items()}

    def norm(self, x, i, mean, var):
        centred = (x - mean.view(-1, 1, 1)) / (var.view(-1, 1, 1) + 1e-5).sqrt()
        return centred * self.w[f"{i}.weight"].view(-1, 1, 1) + self.w[f"{i}.bias"].view(-1, 1, 1)

    def layer(self, x, i, momentum):
        x = functional.conv2d(x, self.w[f"{i - 1}.weight"], self.w[f"{i - 1}.bias"])
        kept = f"{i}.running_mean", f"{i}.running_var"
        if momentum is None:
            return self.norm(x, i, *(self.w[k] for k in kept))
        rows = x.transpose(0, 1).flatten(1)
        self.w[kept[0]] = (1 - momentum) * self.w[kept[0]] + momentum * rows.mean(1)
        self.w[kept[1]] = (1 - momentum) * self.w[kept[1]] + momentum * rows.var(1, unbiased=True)
        return self.norm(x, i, rows.mean(1), rows.var(1, unbiased=False))

    def __call__(self, x, momentum=None):
        x = self.layer(self.layer(x.double(), 1, momentum).relu(), 4, momentum)
        return (x.mean((2, 3)) @ self.w["7.weight"].T + self.w["7.bias"])[:, 0]


def test_statistics_follow_the_augmented_rows_by_the_decaying_momentum():
    net, x = network(), torch.from_numpy(images(6))
    dua = DUA(net, SOURCE, views=16, rows=5, seed=3)
    reference, chance, k = Reference(net), torch.Generator().manual_seed(3), 0
    for part in torch.split(x, [1, 3, 2]):
        for row in part:
            if k < 5:  # only the first rows are taken in
                k += 1
                reference(views(row, 16, chance), momentum=0.1 * 0.94**k + 0.005)
        np.testing.assert_allclose(dua.respond(part).scores, reference(part), atol=1e-5)
    for i in (1, 4):
        np.testing.assert_allclose(dua.net[i].running_var, reference.w[f"{i}.running_var"], rtol=1e-5)
    report = dua.report()
    assert report["steps"] == 5
    assert report["n_adapted"] == 0
    assert report["state"] == 2 * (4 + 5) + 1


def test_a_seed_is_a_stream():
    one, other, third = (DUA(network(), SOURCE, seed=seed).predict(images(3)) for seed in (0, 0, 1))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)


def test_no_rows_taken_in_is_the_source():
    net, x = network(), images(4)
    expected = Reference(net)(torch.from_numpy(x))
    np.testing.assert_allclose(DUA(net, SOURCE, rows=0).respond(x).scores, expected, atol=1e-5)


def test_statistics_that_burst_are_answered_by_the_source_and_counted():
    dua = build("dua", network(), SOURCE)
    dua.net[1].running_mean.fill_(torch.nan)
    x = images(2)
    answer = dua.respond(x)
    np.testing.assert_allclose(answer.scores, Reference(network())(torch.from_numpy(x)), atol=1e-5)
    assert dua.report()["nan"] == 2


@pytest.mark.parametrize("turn", [True, False])
def test_views_are_crops_flips_and_turns_of_the_padded_image(turn):
    image = torch.arange(1.0, 3 * 8 * 8 + 1).view(3, 8, 8)
    padded = functional.pad(image, (4, 4, 4, 4))
    crops = [padded[:, i : i + 8, j : j + 8] for i in range(9) for j in range(9)]
    flips = [crop for crop in crops for crop in (crop, crop.flip(-1))]
    every = {v.rot90(q, (1, 2)).numpy().tobytes() for v in flips for q in range(4 if turn else 1)}
    found = views(image, 200, torch.Generator().manual_seed(0), turn=turn)
    assert all(view.numpy().tobytes() in every for view in found)
    assert len({view.numpy().tobytes() for view in found}) > 80
    flat = views(image.flatten(), 200, torch.Generator().manual_seed(0), turn=turn)
    assert torch.equal(flat.view_as(found), found)


def test_a_strong_view_is_an_image_again_one_draw_for_all():
    x = torch.from_numpy(images(1)).expand(6, -1, -1, -1)
    first = strong(x, torch.Generator().manual_seed(0))
    assert first.shape == x.shape
    assert 0 <= first.min() < first.max() <= 1
    assert (first[0] - first[1]).abs().max() < 0.06, "copies differ by their noise alone"
    assert (first - x).abs().mean() > 0.02
    assert not torch.equal(first, strong(x, torch.Generator().manual_seed(1)))
    flat = strong(x.flatten(1), torch.Generator().manual_seed(0))
    assert torch.equal(flat.view_as(first), first)
