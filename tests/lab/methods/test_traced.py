import pytest
import torch
from torch import nn
from torch.nn import functional

from ploc_lab import models
from ploc_lab.methods.losses import entropy
from ploc_lab.methods.neighbours import agrees
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.stack import Stack
from ploc_lab.methods.traced import Gradient, Outer, traced


class Asked(nn.Module):
    """A parameter that another layer reads, as the CLS token is read by the query's weights."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(4))
        self.ask = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head((x * self.ask(self.token)).tanh())


NETS = {
    "asked": (Asked, 4),
    "mlp": (lambda: models.build("mlp", 9, width=16), 9),
    "ft_transformer": (lambda: models.build("ft_transformer", 9), 9),
    "tab_transformer": (lambda: models.build("tab_transformer", 9), 9),
}


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("name", NETS)
def test_steps_on_factored_gradients_are_torchs_own(name, rows):
    make, d = NETS[name]
    torch.manual_seed(0)
    nets = [make().eval() for _ in range(2)]
    stack = Stack(nets, [n for n, _ in nets[0].named_parameters()])
    gradient = Gradient(lambda params, x: (entropy(stack(params, x)[1]).mean(1),), outer=True)
    ours, rates = SGD(stack, torch.tensor([0.5, 0.2])), (0.5, 0.2)
    theirs = [torch.optim.SGD(net.parameters(), lr=lr) for net, lr in zip(nets, rates, strict=True)]
    for _ in range(3):
        x = torch.randn(rows, d)
        grads, _ = gradient(stack.params, x)
        ours.step(grads)
        for net, optimizer in zip(nets, theirs, strict=True):
            optimizer.zero_grad()
            z = net(x)
            (functional.softplus(z) - z * z.sigmoid()).mean().backward()
            optimizer.step()
    if name == "mlp":
        assert sum(isinstance(g, Outer) for g in grads) == 3, "each weight's gradient stays factored"
    for i, net in enumerate(nets):
        for key, value in net.named_parameters():
            torch.testing.assert_close(stack.params[key][i], value.detach(), atol=2e-6, rtol=1e-5)


def test_what_was_computed_once_is_not_written_on():
    fixed = torch.tensor([3.0, 4.0])

    def function(x):
        total = torch.zeros(2).add_(x)  # the zeros depend on nothing, and are written on
        return total, fixed * 2 + x, torch.ones_like(x)

    run = traced(function)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([5.0, 6.0])):
        total, sums, ones = run(x)
        assert torch.equal(total, x)
        assert torch.equal(sums, fixed * 2 + x)
        assert torch.equal(ones, torch.ones(2))
    assert torch.equal(fixed, torch.tensor([3.0, 4.0]))


def test_a_traced_filter_answers_each_batch_anew():
    run = traced(lambda x, labels: (agrees(x, labels),))
    for seed in range(3):
        torch.manual_seed(seed)
        x, labels = torch.randn(30, 4), torch.randint(0, 2, (2, 30))
        assert torch.equal(run(x, labels)[0], agrees(x, labels))
