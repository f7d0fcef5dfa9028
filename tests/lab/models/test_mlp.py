import pytest
import torch

from ploc_lab.models import build


@pytest.mark.parametrize(("d", "published"), [(38, 76_033), (26, 72_961), (183, 113_153), (365, 159_745)])
def test_has_as_many_parameters_as_the_benchmarks_checkpoints(d, published):
    assert sum(p.numel() for p in build("mlp", d).parameters()) == published


def test_is_linear_and_relu_and_nothing_else():
    torch.manual_seed(0)
    net = build("mlp", 5)
    x = torch.randn(7, 5)
    hidden = x
    weights = list(net.parameters())
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        hidden = (hidden @ weight.T + bias).clamp(min=0)
    torch.testing.assert_close(net.features(x), hidden)
    torch.testing.assert_close(net(x), hidden @ weights[-2].T + weights[-1])


@pytest.mark.parametrize(("classes", "outputs"), [(2, 1), (3, 3), (10, 10)])
def test_two_classes_need_one_logit(classes, outputs):
    assert build("mlp", 4, classes)(torch.zeros(6, 4)).shape == (6, outputs)


def test_a_wrong_name_or_class_count_is_refused_by_value():
    with pytest.raises(ValueError, match=r"no backbone 'resnet'; there are mlp"):
        build("resnet", 4)
    with pytest.raises(ValueError, match="at least 2 classes, not 1"):
        build("mlp", 4, 1)
