import numpy as np
import pytest
import torch
from torch.func import functional_call, stack_module_state

from ploc_lab.models import BACKBONES, build

KINDS = [("mlp", 12), ("ft_transformer", 12), ("tab_transformer", 12), ("cnn", 3072)]


@pytest.fixture(params=KINDS, ids=[name for name, _ in KINDS])
def kind(request):
    torch.manual_seed(0)
    return request.param


def test_every_backbone_is_covered_here():
    assert {name for name, _ in KINDS} == set(BACKBONES)


def test_logits_are_the_head_of_the_features(kind):
    name, d = kind
    net = build(name, d, 3).eval()
    x = torch.rand(5, d)
    torch.testing.assert_close(net(x), net.head(net.features(x)))
    assert net.features(x).shape == (5, net.head.in_features)


def test_a_row_is_answered_alike_alone_and_in_a_batch(kind):
    name, d = kind
    net = build(name, d).eval()
    x = torch.rand(9, d)
    alone = torch.cat([net(row[None]) for row in x])
    np.testing.assert_allclose(alone.detach(), net(x).detach(), rtol=1e-4, atol=1e-5)


def test_checkpoints_run_as_one_stack(kind):
    name, d = kind
    nets = [build(name, d).eval() for _ in range(3)]
    x = torch.rand(4, d)
    parameters, buffers = stack_module_state(nets)
    stacked = torch.vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)
    for z, net in zip(stacked, nets, strict=True):
        torch.testing.assert_close(z, net(x), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # of what the compiler itself imports
def test_is_one_graph_for_the_compiler(kind):
    name, d = kind
    net = build(name, d).eval()
    torch.compiler.reset()
    compiled = torch.compile(net, backend="eager", fullgraph=True, dynamic=True)
    for rows in (4, 7):
        x = torch.rand(rows, d)
        torch.testing.assert_close(compiled(x), net(x))
